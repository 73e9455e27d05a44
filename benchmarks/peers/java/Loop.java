import java.io.IOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.ByteBufferDeserializer;

/**
 * A loop as one writes it by hand: poll, answer each record by MOA, send, commit every so often.
 *
 * Keys and values stay where they were fetched. What was polled has been answered when it commits: at least once
 * flushes the producer first, exactly once ends the transaction that the answers are in.
 */
public final class Loop implements ConsumerRebalanceListener, AutoCloseable {
    private static final Duration POLL = Duration.ofMillis(100);

    private final Job job;
    private final Classifier classifier;
    private final KafkaConsumer<ByteBuffer, ByteBuffer> consumer;
    private final KafkaProducer<byte[], byte[]> producer;
    private final long interval;
    private boolean pending;
    private volatile Exception failure;
    private volatile boolean stopped;

    private Loop(Job job) {
        this.job = job;
        classifier = new Classifier(job);
        interval = job.number("commit") * 1_000_000L;
        Properties reading = job.consumer();
        reading.put("bootstrap.servers", job.of("bootstrap"));
        reading.put("group.id", job.of("group"));
        reading.put("enable.auto.commit", "false");
        consumer = new KafkaConsumer<>(reading, new ByteBufferDeserializer(), new ByteBufferDeserializer());
        Properties writing = job.producer();
        writing.put("bootstrap.servers", job.of("bootstrap"));
        if (job.exactlyOnce()) {
            writing.put("transactional.id", job.of("group") + "-0");
        }
        producer = new KafkaProducer<>(writing, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private void run() throws Exception {
        if (job.exactlyOnce()) {
            producer.initTransactions();
        }
        consumer.subscribe(List.of(job.of("source")), this);
        String sink = job.of("sink");
        Callback sent = (where, error) -> {
            if (error != null) {
                failure = error;
            }
        };
        long due = System.nanoTime() + interval;
        try {
            while (!stopped) {
                ConsumerRecords<ByteBuffer, ByteBuffer> records = consumer.poll(POLL);
                for (ConsumerRecord<ByteBuffer, ByteBuffer> record : records) {
                    answer(record, sink, sent);
                }
                if (System.nanoTime() >= due) {
                    commit();
                    due = System.nanoTime() + interval;
                }
            }
        } catch (WakeupException end) {
            if (!stopped) {
                throw end;
            }
        }
        commit();
    }

    private void answer(ConsumerRecord<ByteBuffer, ByteBuffer> record, String sink, Callback sent) throws IOException {
        if (job.exactlyOnce() && !pending) {
            producer.beginTransaction();
        }
        pending = true;
        Models.Model model = classifier.models.of(record.key());
        ByteBuffer value = record.value();
        byte[] answer = classifier.answer(model, value.array(), value.arrayOffset() + value.position(),
                value.remaining(), record.partition(), record.offset());
        producer.send(new ProducerRecord<>(sink, record.partition(), record.timestamp(), model.key, answer), sent);
    }

    private void commit() throws Exception {
        if (!pending) {
            return;
        }
        Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
        for (TopicPartition partition : consumer.assignment()) {
            positions.put(partition, new OffsetAndMetadata(consumer.position(partition)));
        }
        if (job.exactlyOnce()) {
            producer.sendOffsetsToTransaction(positions, consumer.groupMetadata());
            producer.commitTransaction();
        } else {
            producer.flush();
            if (failure == null) {
                consumer.commitSync(positions);
            }
        }
        if (failure != null) {
            throw failure;
        }
        pending = false;
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        try {
            commit();
        } catch (Exception error) {
            throw new IllegalStateException("what was answered cannot be committed", error);
        }
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
    }

    private void stop() {
        stopped = true;
        consumer.wakeup();
    }

    @Override
    public void close() {
        producer.close();
        consumer.close();
    }

    public static void main(String[] arguments) throws Exception {
        Job.endWithParent();
        Thread main = Thread.currentThread();
        try (Loop loop = new Loop(new Job(arguments))) {
            Runtime.getRuntime().addShutdownHook(new Thread(() -> {
                loop.stop();
                try {
                    main.join();
                } catch (InterruptedException error) {
                    Thread.currentThread().interrupt();
                }
            }));
            loop.run();
        }
    }
}
