package holdfast;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.python.PythonRDD;
import org.apache.spark.api.python.SimplePythonFunction;
import org.apache.spark.util.CollectionAccumulator;

/**
 * Runs Python functions as Spark's tasks. One call into the JVM does what PySpark makes thirty of,
 * some of which look for classes in every jar there is. Only Spark's own classes go to executors.
 *
 * Written for Janino, which comes with Spark; `make jar` compiles it.
 */
public class Copies {
    private final JavaSparkContext context;
    private final Map environment;
    private final List includes;
    private final String python;
    private final String version;
    private final CollectionAccumulator counts;

    public Copies(
            JavaSparkContext context,
            Map environment,
            List includes,
            String python,
            String version,
            CollectionAccumulator counts) {
        this.context = context;
        this.environment = environment;
        this.includes = includes;
        this.python = python;
        this.version = version;
        this.counts = counts;
    }

    /** Has a pickled function called for each line, in a task of its own; returns its lines. */
    public String run(byte[] function, String splits) {
        List lines = Arrays.asList(splits.split("\n"));
        SimplePythonFunction work = new SimplePythonFunction(
                function, environment, includes, python, version, new ArrayList(), counts);
        PythonRDD rows =
                new PythonRDD(context.parallelize(lines, lines.size()).rdd(), work, false, false);
        StringBuilder said = new StringBuilder();
        for (Iterator found = rows.asJavaRDD().collect().iterator(); found.hasNext(); ) {
            said.append(new String((byte[]) found.next(), StandardCharsets.UTF_8)).append('\n');
        }
        return said.toString();
    }
}
