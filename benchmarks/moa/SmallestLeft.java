import java.util.Arrays;
import moa.classifiers.core.splitcriteria.SplitCriterion;
import moa.core.ObjectRepository;
import moa.core.Utils;
import moa.options.AbstractOptionHandler;
import moa.tasks.TaskMonitor;

/**
 * The split criterion of CorrH-Tree as CDT's code computes it (docs/decisions.md, D14): what the smallest entry of
 * each branch leaves of the weight. To find it the entries are sorted where they lie, and leaves begin with them so.
 */
public final class SmallestLeft extends AbstractOptionHandler implements SplitCriterion {
    private static final long serialVersionUID = 1L;

    @Override
    public double getMeritOfSplit(double[] before, double[][] branches) {
        double all = 0.0;
        for (double[] branch : branches) {
            all += Utils.sum(branch);
        }
        double wrong = 0.0;
        for (double[] branch : branches) {
            double weight = Utils.sum(branch);
            Arrays.sort(branch);
            wrong += weight / all * (branch[0] / weight);
        }
        return 1.0 - wrong;
    }

    @Override
    public double getRangeOfMerit(double[] before) {
        return 1.0;
    }

    @Override
    public void getDescription(StringBuilder text, int indent) {
        text.append("smallest entry left");
    }

    @Override
    protected void prepareForUseImpl(TaskMonitor monitor, ObjectRepository repository) {
    }
}
