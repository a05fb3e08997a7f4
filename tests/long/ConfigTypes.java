import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;

/** Prints "TYPE name" for every configuration in the static ConfigDefs of the named classes. */
public class ConfigTypes {
    private static final TreeMap<String, ConfigDef.Type> TYPES = new TreeMap<>();

    public static void main(String[] classes) throws Exception {
        for (String name : classes) {
            Class<?> holder;
            try {
                holder = Class.forName(name);
            } catch (ClassNotFoundException absent) {
                continue; // releases differ in where they keep their definitions
            }
            for (Field field : holder.getDeclaredFields()) {
                if (Modifier.isStatic(field.getModifiers()) && field.getType() == ConfigDef.class) {
                    field.setAccessible(true);
                    add((ConfigDef) field.get(null));
                }
            }
            for (Method method : holder.getDeclaredMethods()) {
                boolean gives = ConfigDef.class.isAssignableFrom(method.getReturnType());
                if (Modifier.isStatic(method.getModifiers()) && gives && method.getParameterCount() == 0) {
                    method.setAccessible(true);
                    add((ConfigDef) method.invoke(null));
                }
            }
        }
        TYPES.forEach((name, type) -> System.out.println(type + " " + name));
    }

    private static void add(ConfigDef definitions) {
        definitions.configKeys().values().forEach(key -> TYPES.put(key.name, key.type));
    }
}
