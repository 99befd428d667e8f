package holdfast;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.api.java.UDF2;
import org.apache.spark.sql.api.java.UDF3;
import org.apache.spark.sql.api.java.UDF5;

/**
 * What the Sql transform needs and no expression of Spark's can do: decimals of any length, and the
 * groups of a match.
 *
 * None of these fails: what has no result is null, and the query says why in its own words.  Written
 * for Janino, which comes with Spark and knows no generics here; `make jar` compiles it.
 */
public class SqlFunctions {
    /** Returns a text as a number, or null where it is none. */
    static BigDecimal number(Object text) {
        if (text == null) {
            return null;
        }
        try {
            return new BigDecimal(text.toString());
        } catch (NumberFormatException none) {
            return null;
        }
    }

    /** Rounds the number in a text up to a count of decimals: towards the larger number. */
    public static class Ceiling implements UDF2 {
        public Object call(Object text, Object scale) {
            BigDecimal found = number(text);
            if (found == null || scale == null) {
                return null;
            }
            // So many digits cannot be meant, and would not fit into memory.
            if (found.precision() - found.scale() > 1000) {
                return found.toString();
            }
            int wanted = ((Integer) scale).intValue();
            return found.setScale(wanted, RoundingMode.CEILING).toPlainString();
        }
    }

    /** What is left after dividing two doubles as they are written, as text; whole: cut to that. */
    public static class Remainder implements UDF3 {
        public Object call(Object left, Object right, Object whole) {
            if (left == null || right == null) {
                return null;
            }
            double a = ((Double) left).doubleValue();
            double b = ((Double) right).doubleValue();
            if (Double.isNaN(a) || Double.isInfinite(a) || Double.isNaN(b)
                    || Double.isInfinite(b) || b == 0) {
                return null;
            }
            BigDecimal rest = BigDecimal.valueOf(a).remainder(BigDecimal.valueOf(b));
            if (((Boolean) whole).booleanValue()) {
                return rest.setScale(0, RoundingMode.DOWN).toPlainString();
            }
            return rest.toString();
        }
    }

    /** The number in a text without zeros at its end and without an exponent. */
    public static class TrimScale implements UDF1 {
        public Object call(Object text) {
            BigDecimal found = number(text);
            return found == null ? null : found.stripTrailingZeros().toPlainString();
        }
    }

    /** A group of the match that has a number, counted from a place; null where there is none. */
    public static class Group implements UDF5 {
        private transient volatile Pattern last;

        public Object call(Object text, Object regex, Object from, Object number, Object group) {
            if (text == null || regex == null || from == null || number == null || group == null) {
                return null;
            }
            Pattern pattern = last;
            if (pattern == null || !pattern.pattern().equals(regex)) {
                pattern = Pattern.compile((String) regex);
                last = pattern;
            }
            String within = (String) text;
            int start = ((Integer) from).intValue() - 1;
            int wanted = ((Integer) group).intValue();
            Matcher matcher = pattern.matcher(within);
            if (start < 0 || start > within.length() || wanted < 0
                    || wanted > matcher.groupCount()) {
                return null;
            }
            boolean found = matcher.find(start);
            for (int i = 1; found && i < ((Integer) number).intValue(); i++) {
                found = matcher.find();
            }
            return found ? matcher.group(wanted) : null;
        }
    }
}
