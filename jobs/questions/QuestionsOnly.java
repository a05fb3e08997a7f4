package kraftlake;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry$;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.command.SetCommand;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.types.DataType;
import scala.Option;
import scala.Product;
import scala.Tuple2;
import scala.collection.Iterable;
import scala.collection.Iterator;

/**
 * Wraps the parser of every session built after it was injected into Spark's extensions: a statement whose
 * parsed plan is more than a question about one database is refused before it is analyzed.
 *
 * The rules (jobs/questions/rules.py) list what is allowed; whatever they do not name is refused. All of a
 * plan is visited: every field of every node, whether Spark calls it a child or not.
 */
public class QuestionsOnly extends scala.runtime.AbstractFunction2 {
    private final Map rules = new HashMap();
    private final String catalog;
    private final String database;
    private final Set functions;

    /** rules: names by kind of rule, separated by spaces. catalog, database: where the lake's tables are. */
    public QuestionsOnly(Map rules, String catalog, String database) {
        java.util.Iterator each = rules.entrySet().iterator();
        while (each.hasNext()) {
            Map.Entry rule = (Map.Entry) each.next();
            this.rules.put(rule.getKey(), words((String) rule.getValue()));
        }
        this.catalog = catalog;
        this.database = database;
        this.functions = functions(set("function_groups"), set("functions"), set("refused_functions"));
    }

    private static Set words(String text) {
        Set found = new HashSet(Arrays.asList(text.split(" ")));
        found.remove("");
        return found;
    }

    /** Spark's own functions of these groups and those named, apart from the refused. */
    private static Set functions(Set groups, Set named, Set refused) {
        Set found = new HashSet(named);
        Iterator builtin = FunctionRegistry$.MODULE$.expressions().iterator();
        while (builtin.hasNext()) {
            Tuple2 entry = (Tuple2) builtin.next();
            ExpressionInfo info = (ExpressionInfo) ((Tuple2) entry._2())._1();
            if (groups.contains(info.getGroup())) {
                found.add(((String) entry._1()).toLowerCase(Locale.ROOT));
            }
        }
        found.removeAll(refused);
        return found;
    }

    /** The parser that a session gets in place of the given one. */
    public Object apply(Object session, final Object parser) {
        final QuestionsOnly questions = this;
        InvocationHandler checked = new InvocationHandler() {
            public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
                if (SQLConf$.MODULE$.get().variableSubstituteEnabled()) {
                    throw refused("spark.sql.variable.substitute is on: it shows variables of the environment");
                }
                Object parsed;
                try {
                    parsed = method.invoke(parser, arguments);
                } catch (InvocationTargetException failed) {
                    throw failed.getCause();
                }
                questions.check(parsed);
                return parsed;
            }
        };
        return Proxy.newProxyInstance(
            ParserInterface.class.getClassLoader(), new Class[] {ParserInterface.class}, checked);
    }

    /** Raises UnsupportedOperationException for a plan or an expression that is not a question. */
    public void check(Object value) {
        if (value instanceof DataType) {
            return;
        }
        if (value instanceof LogicalPlan) {
            checkPlan((LogicalPlan) value);
        } else if (value instanceof Expression) {
            checkExpression((Expression) value);
        } else if (value instanceof FunctionIdentifier) {
            checkFunction(value);
        }
        if (value instanceof Iterable) {
            checkEach(((Iterable) value).iterator());
        } else if (value instanceof Product) {
            checkEach(((Product) value).productIterator());
        }
        // Nodes that keep a part of themselves outside of their fields name it as a child.
        if (value instanceof LogicalPlan) {
            checkChildren(((LogicalPlan) value).children(), (Product) value);
            checkChildren(((LogicalPlan) value).innerChildren(), (Product) value);
        } else if (value instanceof Expression) {
            checkChildren(((Expression) value).children(), (Product) value);
        }
    }

    private void checkEach(Iterator each) {
        while (each.hasNext()) {
            check(each.next());
        }
    }

    /** Checks those children that are not a field of the node. */
    private void checkChildren(Iterable children, Product node) {
        Set fields = java.util.Collections.newSetFromMap(new java.util.IdentityHashMap());
        addAll(fields, node.productIterator());
        Iterator each = children.iterator();
        while (each.hasNext()) {
            Object child = each.next();
            if (!fields.contains(child)) {
                check(child);
            }
        }
    }

    private void addAll(Set fields, Iterator each) {
        while (each.hasNext()) {
            Object field = each.next();
            fields.add(field);
            if (field instanceof Iterable) {
                addAll(fields, ((Iterable) field).iterator());
            } else if (field instanceof Option || field instanceof Tuple2) {
                addAll(fields, ((Product) field).productIterator());
            }
        }
    }

    private void checkPlan(LogicalPlan plan) {
        String kind = plan.getClass().getName();
        String name = simple(kind);
        if (!kind.startsWith("org.apache.spark.sql.") || !set("plans").contains(name)) {
            throw refused(name + " is not a question");
        }
        Product node = (Product) plan;
        if (set("relations").contains(name)) {
            checkRelation(names(node.productElement(0)));
        } else if (set("namespaces").contains(name)) {
            checkNamespace(names(node.productElement(0)));
        } else if (set("function_names").contains(name)) {
            checkFunction(node.productElement(0));
        }
        if (plan instanceof UnresolvedRelation) {
            UnresolvedRelation relation = (UnresolvedRelation) plan;
            if (!relation.options().isEmpty() || relation.isStreaming()) {
                throw refused("a table is read without options and as it is now");
            }
        }
        if (plan instanceof SetCommand) {
            checkSetting(((SetCommand) plan).kv());
        }
    }

    private void checkExpression(Expression expression) {
        String kind = expression.getClass().getName();
        String name = simple(kind);
        String part = kind.substring(0, kind.lastIndexOf('.'));
        if (!set("expression_packages").contains(part) || set("refused_expressions").contains(name)) {
            throw refused(name + " is not for questions");
        }
        if (set("function_names").contains(name)) {
            checkFunction(((Product) expression).productElement(0));
        }
    }

    /** A table or view: NAME, DATABASE.NAME or CATALOG.DATABASE.NAME, where NAME is no path. */
    private void checkRelation(List parts) {
        int last = parts.size() - 1;
        if (!isPlain((String) parts.get(last)) || !isHere(parts.subList(0, last))) {
            throw refused(String.join(".", parts) + " is not a table or view of the lake");
        }
    }

    /** The database itself, by either of its names, or the current one. */
    private void checkNamespace(List parts) {
        if (!isHere(parts)) {
            throw refused(String.join(".", parts) + " is not the lake's database");
        }
    }

    private void checkFunction(Object named) {
        List parts = names(named);
        int last = parts.size() - 1;
        String name = ((String) parts.get(last)).toLowerCase(Locale.ROOT);
        if (!isHere(parts.subList(0, last)) || !functions.contains(name)) {
            throw refused("function " + String.join(".", parts) + " is not for questions");
        }
    }

    private void checkSetting(Option setting) {
        String key = setting.isEmpty() ? "of all settings" : (String) ((Tuple2) setting.get())._1();
        if (!set("settings").contains(key)) {
            throw refused("SET " + key + " is not for questions");
        }
    }

    /** Whether these parts before a name lead to the lake's database. */
    private boolean isHere(List before) {
        if (before.isEmpty()) {
            return true;
        }
        boolean ends = database.equalsIgnoreCase((String) before.get(before.size() - 1));
        return ends && (before.size() == 1 || before.size() == 2 && catalog.equalsIgnoreCase((String) before.get(0)));
    }

    private static boolean isPlain(String name) {
        for (int i = 0; i < name.length(); i++) {
            if (!Character.isLetterOrDigit(name.charAt(i)) && name.charAt(i) != '_') {
                return false;
            }
        }
        return !name.isEmpty();
    }

    /** The parts of a name, as Spark's classes hold it. */
    private static List names(Object value) {
        List parts = new ArrayList();
        if (value instanceof String) {
            parts.add(value);
        } else if (value instanceof FunctionIdentifier) {
            FunctionIdentifier function = (FunctionIdentifier) value;
            addPart(parts, function.catalog());
            addPart(parts, function.database());
            parts.add(function.funcName());
        } else {
            Iterator each = ((Iterable) value).iterator();
            while (each.hasNext()) {
                parts.add((String) each.next());
            }
        }
        return parts;
    }

    private static void addPart(List parts, Option part) {
        if (!part.isEmpty()) {
            parts.add(part.get());
        }
    }

    private Set set(String kind) {
        return (Set) rules.get(kind);
    }

    private static String simple(String kind) {
        String name = kind.substring(kind.lastIndexOf('.') + 1);
        return name.endsWith("$") ? name.substring(0, name.length() - 1) : name;
    }

    private static UnsupportedOperationException refused(String what) {
        return new UnsupportedOperationException("refused: " + what
            + ": only SELECT, WITH, SHOW, DESCRIBE, EXPLAIN and a few SET over the lake's tables and views are answered"
            + " (kraftlake sql --write runs any statement)");
    }
}
