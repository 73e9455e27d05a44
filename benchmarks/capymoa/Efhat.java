import com.yahoo.labs.samoa.instances.Instance;
import moa.classifiers.AbstractClassifier;
import moa.classifiers.MultiClassClassifier;
import moa.classifiers.core.attributeclassobservers.NominalAttributeClassObserver;
import moa.classifiers.core.splitcriteria.InfoGainSplitCriterion;
import moa.classifiers.trees.plastic_util.EFHATNode;
import moa.core.DoubleVector;
import moa.core.Measurement;
import java.util.ArrayList;

/**
 * The EFHAT of PLASTIC's authors as a classifier of MOA's: their release has its nodes, but no classifier of them.
 *
 * The parameters are the defaults of their PLASTIC.
 */
public final class Efhat extends AbstractClassifier implements MultiClassClassifier {
    private static final long serialVersionUID = 1L;
    private EFHATNode root;
    private int seen;

    @Override
    public void resetLearningImpl() {
        root = new EFHATNode(new InfoGainSplitCriterion(), 200, 1e-7, 0.2, false, "NBA", 200, 0, 20, 0.05, false, true,
                new NominalAttributeClassObserver(), new DoubleVector(), new ArrayList<>(), -1, null);
        seen = 0;
    }

    @Override
    public void trainOnInstanceImpl(Instance instance) {
        root.learnInstance(instance, seen++);
    }

    @Override
    public double[] getVotesForInstance(Instance instance) {
        return root.predict(instance);
    }

    @Override
    public boolean isRandomizable() {
        return false;
    }

    @Override
    protected Measurement[] getModelMeasurementsImpl() {
        return new Measurement[0];
    }

    @Override
    public void getModelDescription(StringBuilder out, int indent) {
    }
}
