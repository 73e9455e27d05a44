import moa.classifiers.core.conditionaltests.InstanceConditionalTest;
import moa.classifiers.trees.FIMTDD;

/**
 * MOA's FIMT-DD without three faults of its detection of drifts.
 *
 * <p>A child that takes the place of another one is given its parent: MOA leaves that out, and a tree whose
 * replaced subtree is split or replaced later is lost above it. The error of a leaf is a difference of
 * targets, as that of an inner node is, from which no mean is subtracted. Targets that are equal apart from
 * rounding have the deviation 0.
 */
public class SteadyTree extends FIMTDD {
    private static final long serialVersionUID = 1L;

    /** An inner node that is the parent of all its children. */
    private static final class ParentNode extends SplitNode {
        private static final long serialVersionUID = 1L;

        ParentNode(InstanceConditionalTest test, FIMTDD tree) {
            super(test, tree);
        }

        @Override
        public void setChild(int index, Node child) {
            super.setChild(index, child);
            child.setParent(this);
        }
    }

    @Override
    protected SplitNode newSplitNode(InstanceConditionalTest test) {
        maxID++;
        return new ParentNode(test, this);
    }

    @Override
    public double normalizeTargetValue(double value) {
        double variance = (sumOfSquares - sumOfValues * sumOfValues / examplesSeen) / examplesSeen;
        if (!(variance > 1e-9 * sumOfSquares / examplesSeen)) {
            return 0.0;
        }
        return value / (3.0 * Math.sqrt(variance));
    }
}
