package holdfast;

import java.util.TreeSet;
import java.util.concurrent.TimeoutException;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkJobInfo;
import org.apache.spark.SparkStageInfo;
import org.apache.spark.SparkStatusTracker;
import org.apache.spark.status.api.v1.StageData;
import scala.Option;

/**
 * What Spark knows of the jobs of a group, told in one call: people look at it while jobs run.
 *
 * Written for Janino, which comes with Spark; `make jar` compiles it.
 */
public class Figures {
    private final SparkContext context;

    public Figures(SparkContext context) {
        this.context = context;
    }

    /**
     * Returns rows and bytes read, rows and bytes written, rows shuffled, tasks that have ended,
     * and stages.
     */
    public String of(String group) {
        TreeSet stages = stages(group);
        long[] sums = new long[6];
        Object[] found = stages.toArray();
        for (int i = 0; i < found.length; i++) {
            StageData stage =
                    context.statusStore().lastStageAttempt(((Integer) found[i]).intValue());
            sums[0] += stage.inputRecords();
            sums[1] += stage.inputBytes();
            sums[2] += stage.outputRecords();
            sums[3] += stage.outputBytes();
            sums[4] += stage.shuffleReadRecords() + stage.shuffleWriteRecords();
            sums[5] += stage.numCompleteTasks();
        }
        StringBuilder said = new StringBuilder();
        for (int i = 0; i < sums.length; i++) {
            said.append(sums[i]).append(' ');
        }
        return said.append(found.length).toString();
    }

    /** Waits until figures have caught up with jobs; returns whether they have, in that time. */
    public boolean settled(long timeoutMs) throws TimeoutException {
        try {
            context.listenerBus().waitUntilEmpty(timeoutMs);
        } catch (TimeoutException late) {
            return false;
        }
        return true;
    }

    /** Returns how many tasks of a group run now. */
    public int active(String group) {
        SparkStatusTracker tracker = context.statusTracker();
        Object[] found = stages(group).toArray();
        int active = 0;
        for (int i = 0; i < found.length; i++) {
            Option stage = tracker.getStageInfo(((Integer) found[i]).intValue());
            if (stage.isDefined()) {
                active += ((SparkStageInfo) stage.get()).numActiveTasks();
            }
        }
        return active;
    }

    private TreeSet stages(String group) {
        SparkStatusTracker tracker = context.statusTracker();
        TreeSet stages = new TreeSet();
        int[] jobs = tracker.getJobIdsForGroup(group);
        for (int i = 0; i < jobs.length; i++) {
            Option job = tracker.getJobInfo(jobs[i]);
            if (job.isDefined()) {
                int[] ids = ((SparkJobInfo) job.get()).stageIds();
                for (int k = 0; k < ids.length; k++) {
                    stages.add(Integer.valueOf(ids[k]));
                }
            }
        }
        return stages;
    }
}
