package holdfast;

import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.python.PythonRDD;
import org.apache.spark.api.python.SimplePythonFunction;
import org.apache.spark.util.CollectionAccumulator;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction2;

/**
 * Runs Python functions as Spark's tasks. One call into the JVM does what PySpark makes thirty of,
 * some of which look for classes in every jar there is.
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
        List lines = Arrays.asList(splits.split("\n", -1));
        SimplePythonFunction work = new SimplePythonFunction(
                function, environment, includes, python, version, new ArrayList(), counts);
        PythonRDD rows =
                new PythonRDD(context.parallelize(lines, lines.size()).rdd(), work, false, false);
        // Executors elsewhere do not have our class. Spark's own way through `collect` takes a
        // closure of Scala's apart, each time anew: half of what a job costs the driver.
        Object[] said = context.sc().isLocal() ? here(rows, lines.size()) : anywhere(rows);
        StringBuilder all = new StringBuilder();
        for (int i = 0; i < said.length; i++) {
            all.append(said[i]);
        }
        return all.toString();
    }

    private Object[] here(PythonRDD rows, int count) {
        List partitions = new ArrayList();
        for (int i = 0; i < count; i++) {
            partitions.add(Integer.valueOf(i));
        }
        return (Object[]) context.sc().runJob(
                rows,
                new Lines(),
                CollectionConverters.asScala(partitions).toSeq(),
                ClassTag$.MODULE$.apply(String.class));
    }

    private Object[] anywhere(PythonRDD rows) {
        Object[] said = rows.asJavaRDD().collect().toArray();
        for (int i = 0; i < said.length; i++) {
            said[i] = Lines.line((byte[]) said[i]);
        }
        return said;
    }

    /** What a task has said, as lines. */
    public static class Lines extends AbstractFunction2 implements Serializable {
        public Object apply(Object task, Object said) {
            StringBuilder lines = new StringBuilder();
            for (Iterator left = (Iterator) said; left.hasNext(); ) {
                lines.append(line((byte[]) left.next()));
            }
            return lines.toString();
        }

        static String line(byte[] said) {
            return new String(said, StandardCharsets.UTF_8) + "\n";
        }
    }
}
