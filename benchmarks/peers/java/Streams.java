import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.api.RecordMetadata;

/**
 * The same job in Kafka Streams: a source, a processor with the models of its partition, a sink.
 *
 * Keys and values are bytes all the way, and the processor is a node of the topology itself, without the layers of
 * the language above it.
 */
public final class Streams {

    /** The processor of a partition, with trees in memory: there is no store. */
    static final class Classify implements Processor<byte[], byte[], byte[], byte[]> {
        private final Classifier classifier;
        private ProcessorContext<byte[], byte[]> context;

        Classify(Job job) {
            classifier = new Classifier(job);
        }

        @Override
        public void init(ProcessorContext<byte[], byte[]> given) {
            context = given;
        }

        @Override
        public void process(Record<byte[], byte[]> record) {
            RecordMetadata place = context.recordMetadata().orElseThrow();
            Models.Model model = classifier.models.of(ByteBuffer.wrap(record.key()));
            byte[] value = record.value();
            try {
                byte[] answer = classifier.answer(model, value, 0, value.length, place.partition(), place.offset());
                context.forward(record.withValue(answer));
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }

    private Streams() {
    }

    private static Topology topology(Job job) {
        return new Topology()
                .addSource("instances", new ByteArrayDeserializer(), new ByteArrayDeserializer(), job.of("source"))
                .addProcessor("classify", () -> new Classify(job), "instances")
                .addSink("predictions", job.of("sink"), new ByteArraySerializer(), new ByteArraySerializer(), "classify");
    }

    private static Properties settings(Job job) {
        Properties set = new Properties();
        set.put(StreamsConfig.APPLICATION_ID_CONFIG, job.of("group"));
        set.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, job.of("bootstrap"));
        set.put(StreamsConfig.STATE_DIR_CONFIG, job.of("state"));
        set.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, job.of("threads"));
        set.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, job.of("commit"));
        set.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG,
                job.exactlyOnce() ? StreamsConfig.EXACTLY_ONCE_V2 : StreamsConfig.AT_LEAST_ONCE);
        set.put(StreamsConfig.BUFFERED_RECORDS_PER_PARTITION_CONFIG, "10000");
        set.put(StreamsConfig.ENABLE_METRICS_PUSH_CONFIG, "false");
        job.consumer().forEach((name, value) -> set.put(StreamsConfig.mainConsumerPrefix((String) name), value));
        job.producer().forEach((name, value) -> set.put(StreamsConfig.producerPrefix((String) name), value));
        set.remove(StreamsConfig.mainConsumerPrefix("isolation.level"));
        return set;
    }

    public static void main(String[] arguments) throws InterruptedException {
        Job.endWithParent();
        Job job = new Job(arguments);
        KafkaStreams streams = new KafkaStreams(topology(job), settings(job));
        CountDownLatch failed = new CountDownLatch(1);
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            failed.countDown();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(20))));
        streams.start();
        failed.await();
        System.exit(1);
    }
}
