import java.util.HashMap;
import java.util.Map;

/** {@code name=value} arguments. */
final class Settings {
    private final Map<String, String> values = new HashMap<>();

    Settings(String[] args, int from) {
        for (int i = from; i < args.length; i++) {
            int at = args[i].indexOf('=');
            if (at <= 0) throw new IllegalArgumentException(args[i] + ": NAME=VALUE expected");
            values.put(args[i].substring(0, at), args[i].substring(at + 1));
        }
    }

    long number(String name, long otherwise) {
        String value = values.get(name);
        return value == null ? otherwise : Long.parseLong(value);
    }

    int size(String name, long otherwise) {
        return Math.toIntExact(number(name, otherwise));
    }
}
