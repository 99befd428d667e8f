package holdfast;

import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.expressions.UserDefinedFunction;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.util.AccumulatorV2;

/**
 * Leaves out rows and counts them, for transforms that are told to.
 *
 * Rows are counted for each part of each stage of Spark's.  A part that runs again counts once, and
 * of several stages that read the same rows (one for each sink) the one that saw most counts.
 * Written for Janino, which comes with Spark and knows no generics here; `make jar` compiles it.
 */
public class Rejected {
    /** How many rows have been left out, by stage and part. */
    public static class Counts extends AccumulatorV2 {
        private ConcurrentHashMap counts = new ConcurrentHashMap();

        public boolean isZero() {
            return counts.isEmpty();
        }

        public AccumulatorV2 copy() {
            Counts made = new Counts();
            made.counts.putAll(counts);
            return made;
        }

        public void reset() {
            counts.clear();
        }

        /** Counts one row in a part, such as 7/0: stage 7, part 0. */
        public void add(Object part) {
            Object before = counts.get(part);
            long count = before == null ? 0L : ((Long) before).longValue();
            counts.put(part, Long.valueOf(count + 1L));
        }

        public void merge(AccumulatorV2 other) {
            Iterator parts = ((Counts) other).counts.entrySet().iterator();
            while (parts.hasNext()) {
                Map.Entry one = (Map.Entry) parts.next();
                Long there = (Long) one.getValue();
                Object here = counts.get(one.getKey());
                if (here == null || ((Long) here).longValue() < there.longValue()) {
                    counts.put(one.getKey(), there);
                }
            }
        }

        public Object value() {
            return Long.valueOf(total());
        }

        /** The rows that the stage which saw most of them has left out. */
        public long total() {
            HashMap stages = new HashMap();
            long most = 0L;
            Iterator parts = counts.entrySet().iterator();
            while (parts.hasNext()) {
                Map.Entry one = (Map.Entry) parts.next();
                String part = (String) one.getKey();
                String stage = part.substring(0, part.indexOf('/'));
                Object before = stages.get(stage);
                long sum = before == null ? 0L : ((Long) before).longValue();
                sum += ((Long) one.getValue()).longValue();
                stages.put(stage, Long.valueOf(sum));
                most = Math.max(most, sum);
            }
            return most;
        }
    }

    /** Says of a row that breaks a rule that it does not stay, and counts it. */
    public static class Stays implements UDF1 {
        private final Counts counts;

        public Stays(Counts counts) {
            this.counts = counts;
        }

        public Object call(Object broken) {
            if (!Boolean.TRUE.equals(broken)) {
                return Boolean.TRUE;
            }
            TaskContext task = TaskContext.get();
            counts.add(task == null ? "none/0" : task.stageId() + "/" + task.partitionId());
            return Boolean.FALSE;
        }
    }

    /**
     * Returns a function that says whether a row stays, given whether it breaks a rule.  It is not
     * deterministic: Spark must not ask twice, nor sooner than the plan says.
     */
    public static UserDefinedFunction staying(Counts counts) {
        return functions.udf((UDF1) new Stays(counts), DataTypes.BooleanType).asNondeterministic();
    }
}
