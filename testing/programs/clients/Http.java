import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.HexFormat;

/** As http.js, with java.net.http: java Http.java URL FOLDER. */
public class Http {
    public static void main(String[] arguments) throws Exception {
        HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        for (int number = 0; number < 60; number++) {
            String name = number % 10 == 0 ? "large" : number % 2 == 0 ? "middle" : "small";
            byte[] wanted = Files.readAllBytes(Path.of(arguments[1], name));
            var get = HttpRequest.newBuilder(URI.create(arguments[0] + "/" + name)).build();
            if (!Arrays.equals(client.send(get, BodyHandlers.ofByteArray()).body(), wanted)) fail(name + " came as other bytes");
            var post = HttpRequest.newBuilder(URI.create(arguments[0] + "/upload")).POST(HttpRequest.BodyPublishers.ofByteArray(wanted)).build();
            String digest = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(wanted));
            if (!client.send(post, BodyHandlers.ofString()).body().equals(digest)) fail("the digest of " + name + " is another");
        }
    }

    static void fail(String why) {
        System.err.println(why);
        System.exit(1);
    }
}
