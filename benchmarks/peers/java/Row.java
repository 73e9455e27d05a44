import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

/** The record at hand: its values, as the instance of MOA holds them, its class and its id. One, used again. */
final class Row {
    static final int NO_LABEL = -1;

    /** The attributes, then the class. NaN is a missing value. */
    final double[] values;
    final int attributes;
    int label;

    /** The record's own id, null if it has none. */
    byte[] id;

    private final char[][] classes;
    private final byte[][] texts;
    private final long[] numbers;

    Row(int attributes, List<String> classes) {
        this.attributes = attributes;
        this.values = new double[attributes + 1];
        this.classes = classes.stream().map(String::toCharArray).toArray(char[][]::new);
        this.texts = classes.stream().map(Writer::bytes).toArray(byte[][]::new);
        this.numbers = classes.stream().mapToLong(Row::number).toArray();
    }

    /** The whole number that a class is named by, as packed labels name it. */
    private static long number(String name) {
        return name.matches("-?\\d{1,9}") ? Long.parseLong(name) : Long.MIN_VALUE;
    }

    void clear() {
        Arrays.fill(values, 0, attributes, Double.NaN);
        label = NO_LABEL;
        id = null;
    }

    /** Take a class by its name, without making a string of it. */
    void label(char[] text, int at, int length) {
        for (int i = 0; i < classes.length; i++) {
            if (Arrays.equals(classes[i], 0, classes[i].length, text, at, at + length)) {
                label = i;
                return;
            }
        }
        throw new IllegalArgumentException("class '" + new String(text, at, length) + "' is not known");
    }

    /** Take a class by its name in UTF-8, the first `length` bytes. */
    void label(byte[] text, int length) {
        for (int i = 0; i < texts.length; i++) {
            if (Arrays.equals(texts[i], 0, texts[i].length, text, 0, length)) {
                label = i;
                return;
            }
        }
        throw new IllegalArgumentException("class '" + new String(text, 0, length, StandardCharsets.UTF_8) + "' is not known");
    }

    void label(int number) {
        for (int i = 0; i < numbers.length; i++) {
            if (numbers[i] == number) {
                label = i;
                return;
            }
        }
        throw new IllegalArgumentException("class '" + number + "' is not known");
    }

    void id(String text) {
        id = text.getBytes(StandardCharsets.UTF_8);
    }
}
