import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.concurrent.Executors;

/** As asyncio_server.py, with the JDK's own server: java Http.java PORT FOLDER. */
public class Http {
    public static void main(String[] arguments) throws Exception {
        Path folder = Path.of(arguments[1]);
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0])), 128);
        server.createContext("/", exchange -> answer(exchange, folder));
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.start();
    }

    static void answer(HttpExchange exchange, Path folder) throws IOException {
        try {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            byte[] content;
            if (exchange.getRequestMethod().equals("GET")) {
                content = Files.readAllBytes(folder.resolve(Path.of(exchange.getRequestURI().getPath()).getFileName()));
                exchange.getResponseHeaders().set("X-Digest", HexFormat.of().formatHex(digest.digest(content)));
            } else {
                byte[] part = new byte[65536];
                try (InputStream body = exchange.getRequestBody()) {
                    for (int n; (n = body.read(part)) > 0;) digest.update(part, 0, n);
                }
                content = HexFormat.of().formatHex(digest.digest()).getBytes();
            }
            exchange.sendResponseHeaders(200, content.length);
            try (OutputStream body = exchange.getResponseBody()) {
                body.write(content);
            }
        } catch (java.security.NoSuchAlgorithmException error) {
            throw new IOException(error);
        } finally {
            exchange.close();
        }
    }
}
