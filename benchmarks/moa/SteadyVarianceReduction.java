import moa.classifiers.core.splitcriteria.VarianceReductionSplitCriterion;

/**
 * MOA's reduction of variance without what rounding makes of it: a merit up to 1e-9 of the mean square of the
 * targets is 0, and others have 30 bits, so that tests that divide the targets alike have equal merits.
 */
public final class SteadyVarianceReduction extends VarianceReductionSplitCriterion {
    private static final long serialVersionUID = 1L;
    private static final long DROPPED = 1L << 23;

    @Override
    public double getMeritOfSplit(double[] before, double[][] branches) {
        double merit = super.getMeritOfSplit(before, branches);
        if (!(merit > 1e-9 * before[2] / before[0])) {
            return 0.0;
        }
        double step = Math.ulp(merit) * DROPPED;
        return Math.rint(merit / step) * step;
    }
}
