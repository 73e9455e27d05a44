import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import moa.classifiers.core.driftdetection.ChangeDetector;
import moa.options.AbstractOptionHandler;
import moa.options.ClassOption;

/**
 * Writes the level of one of MOA's drift detectors after each input: 0 in control, 1 warning, 2 drift.
 *
 * Arguments: the detector as MOA's command line names it, the file of the inputs (a byte each, 0 or 1), the file
 * to write (a byte for each input).
 */
public final class Detectors {

    private Detectors() {
    }

    public static void main(String[] arguments) throws Exception {
        ChangeDetector detector =
                (ChangeDetector) ClassOption.cliStringToObject(arguments[0], ChangeDetector.class, null);
        if (detector instanceof AbstractOptionHandler) {
            ((AbstractOptionHandler) detector).prepareForUse();
        }
        write(detector, Paths.get(arguments[1]), Paths.get(arguments[2]));
    }

    private static void write(ChangeDetector detector, Path inputs, Path levels) throws IOException {
        byte[] given = Files.readAllBytes(inputs);
        byte[] found = new byte[given.length];
        for (int i = 0; i < given.length; i++) {
            detector.input(given[i]);
            found[i] = (byte) (detector.getChange() ? 2 : detector.getWarningZone() ? 1 : 0);
        }
        Files.write(levels, found);
    }
}
