package kraftlake;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.Timer;
import java.util.TimerTask;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLServerSocket;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.CallbackHandler;
import javax.security.auth.callback.NameCallback;
import javax.security.auth.callback.PasswordCallback;
import javax.security.sasl.AuthenticationException;
import javax.security.sasl.AuthorizeCallback;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hive.service.auth.PlainSaslServer;
import org.apache.hive.service.auth.TSetIpAddressProcessor;
import org.apache.hive.service.cli.CLIService;
import org.apache.hive.service.cli.thrift.ThriftBinaryCLIService;
import org.apache.hive.service.rpc.thrift.TCLIService;
import org.apache.hive.service.rpc.thrift.TExecuteStatementReq;
import org.apache.hive.service.rpc.thrift.TGetOperationStatusResp;
import org.apache.hive.service.rpc.thrift.TOpenSessionReq;
import org.apache.thrift.TProcessor;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.server.TThreadPoolServer;
import org.apache.thrift.transport.TSaslServerTransport;
import org.apache.thrift.transport.TServerSocket;
import org.apache.thrift.transport.TTransport;
import org.apache.thrift.transport.TTransportException;
import org.apache.thrift.transport.TTransportFactory;

/**
 * The protocol of HiveServer2 over one socket, for clients that know the user and the password (SASL PLAIN).
 *
 * A client calls the listed methods only. What it asks to configure with a session or a statement is dropped
 * (Hive would set system properties of the JVM and settings of Spark with it), except for the database.
 */
public class QuestionServer extends ThriftBinaryCLIService {
    // What a client may take before it has logged in, and how many may be connected at once.
    private static final int LOGIN_SECONDS = 5;
    private static final int LOGIN_BYTES = 4096;
    private static final int MOST_CONNECTIONS = 64;
    private static final String DATABASE = "use:database";
    private static final String[] WRAPPED = {
        "org.apache.hive.service.cli.HiveSQLException: ", "Error running query: ",
        "java.lang.UnsupportedOperationException: "};

    private final ServerSocket socket;
    private final Set methods;
    private final byte[] user;
    private final byte[] password;

    /**
     * Listens at once. methods: of TCLIService, that may be called, separated by spaces. certificates, key: PEM, both
     * null for a server without TLS.
     */
    public QuestionServer(
            CLIService service, String methods, String host, Integer port, String user, String password,
            String certificates, String key) throws Exception {
        super(service);
        this.methods = new HashSet(Arrays.asList(methods.split(" ")));
        this.user = user.getBytes(StandardCharsets.UTF_8);
        this.password = password.getBytes(StandardCharsets.UTF_8);
        InetAddress address = InetAddress.getByName(host);
        if (certificates == null) {
            this.socket = new ServerSocket(port.intValue(), 50, address);
        } else {
            SSLServerSocket tls = (SSLServerSocket) context(certificates, key).getServerSocketFactory()
                .createServerSocket(port.intValue(), 50, address);
            tls.setEnabledProtocols(new String[] {"TLSv1.3", "TLSv1.2"});
            this.socket = tls;
        }
    }

    private static SSLContext context(String certificates, String key) throws Exception {
        byte[] pem = certificates.getBytes(StandardCharsets.US_ASCII);
        Collection chain = CertificateFactory.getInstance("X.509").generateCertificates(new ByteArrayInputStream(pem));
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        store.setKeyEntry("server", privateKey(key), new char[0],
            (Certificate[]) chain.toArray(new Certificate[chain.size()]));
        KeyManagerFactory keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        keys.init(store, new char[0]);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(keys.getKeyManagers(), null, null);
        return context;
    }

    /** A private key of PKCS 8 (BEGIN PRIVATE KEY). */
    private static PrivateKey privateKey(String pem) throws Exception {
        String begin = "-----BEGIN PRIVATE KEY-----";
        int start = pem.indexOf(begin);
        int end = pem.indexOf("-----END PRIVATE KEY-----");
        if (start < 0 || end < start) {
            throw new InvalidKeySpecException("no BEGIN PRIVATE KEY (PKCS 8, not encrypted) in the key's file");
        }
        String text = pem.substring(start + begin.length(), end);
        PKCS8EncodedKeySpec spec = new PKCS8EncodedKeySpec(Base64.getMimeDecoder().decode(text));
        String[] algorithms = {"RSA", "EC", "EdDSA"};
        for (int i = 0; i < algorithms.length; i++) {
            try {
                return KeyFactory.getInstance(algorithms[i]).generatePrivate(spec);
            } catch (InvalidKeySpecException other) {
                // a key of another algorithm
            }
        }
        throw new InvalidKeySpecException("the private key is of none of RSA, EC, EdDSA");
    }

    protected void initializeServer() {
        try {
            java.security.Security.addProvider(new PlainSaslServer.SaslPlainProvider());
            TSaslServerTransport.Factory transport = new TSaslServerTransport.Factory();
            transport.addServerDefinition("PLAIN", "CUSTOM", null, new HashMap(), new Login());
            TThreadPoolServer.Args arguments = new TThreadPoolServer.Args(new TServerSocket(socket));
            arguments.processor(new TSetIpAddressProcessor(allowed()));
            arguments.transportFactory(new LoginInTime(transport));
            // Beyond them, a connection is closed as soon as it is made.
            arguments.maxWorkerThreads(MOST_CONNECTIONS);
            arguments.protocolFactory(new TBinaryProtocol.Factory());
            server = new TThreadPoolServer(arguments);
            server.setServerEventHandler(serverEventHandler);
        } catch (Exception failed) {
            throw new IllegalStateException(failed);
        }
    }

    /** This service, of which only the allowed methods answer. */
    private TCLIService.Iface allowed() {
        final QuestionServer service = this;
        InvocationHandler handler = new InvocationHandler() {
            public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
                if (!methods.contains(method.getName())) {
                    throw new org.apache.thrift.TApplicationException(
                        org.apache.thrift.TApplicationException.UNKNOWN_METHOD, method.getName() + " is not served");
                }
                if (arguments != null && arguments.length == 1) {
                    withoutSettings(arguments[0]);
                }
                try {
                    return withoutTrace(method.invoke(service, arguments));
                } catch (InvocationTargetException failed) {
                    throw failed.getCause();
                }
            }
        };
        return (TCLIService.Iface) Proxy.newProxyInstance(
            TCLIService.Iface.class.getClassLoader(), new Class[] {TCLIService.Iface.class}, handler);
    }

    private static void withoutSettings(Object request) {
        if (request instanceof TOpenSessionReq) {
            TOpenSessionReq open = (TOpenSessionReq) request;
            Map asked = open.getConfiguration();
            Map kept = new HashMap();
            if (asked != null && asked.containsKey(DATABASE)) {
                kept.put(DATABASE, asked.get(DATABASE));
            }
            open.setConfiguration(kept);
        } else if (request instanceof TExecuteStatementReq) {
            ((TExecuteStatementReq) request).unsetConfOverlay();
        }
    }

    /** An answer whose error is its message: Hive sends the trace of its classes with it. */
    private static Object withoutTrace(Object answer) {
        if (answer instanceof TGetOperationStatusResp && ((TGetOperationStatusResp) answer).isSetErrorMessage()) {
            String message = ((TGetOperationStatusResp) answer).getErrorMessage().split("\n\tat ", 2)[0];
            for (int i = 0; i < WRAPPED.length; i++) {
                message = message.replace(WRAPPED[i], "");
            }
            ((TGetOperationStatusResp) answer).setErrorMessage(message);
        }
        return answer;
    }

    /** Waits for a client's login: not long, and for no long message, since anybody may connect. */
    private static class LoginInTime extends TTransportFactory {
        private final TTransportFactory logins;
        private final Timer timer = new Timer("login", true);

        LoginInTime(TTransportFactory logins) {
            this.logins = logins;
        }

        public TTransport getTransport(final TTransport client) throws TTransportException {
            TimerTask late = new TimerTask() {
                public void run() {
                    client.close();
                }
            };
            int most = client.getConfiguration().getMaxMessageSize();
            timer.schedule(late, LOGIN_SECONDS * 1000L);
            client.getConfiguration().setMaxMessageSize(Math.min(most, LOGIN_BYTES));
            try {
                TTransport known = logins.getTransport(client);
                client.getConfiguration().setMaxMessageSize(most);
                // Resets the remaining size of a message to the maximum.
                known.updateKnownMessageSize(0);
                return known;
            } catch (RuntimeException noLogin) {
                // Of this type it is not logged: anybody could fill the log.
                throw new TTransportException(TTransportException.END_OF_FILE, noLogin);
            } finally {
                late.cancel();
            }
        }
    }

    /** Compares a client's user and password with the server's, in the same time whatever they are. */
    private class Login implements CallbackHandler {
        public void handle(Callback[] callbacks) throws IOException {
            String name = "";
            String secret = "";
            AuthorizeCallback authorize = null;
            for (int i = 0; i < callbacks.length; i++) {
                if (callbacks[i] instanceof NameCallback) {
                    name = ((NameCallback) callbacks[i]).getName();
                } else if (callbacks[i] instanceof PasswordCallback) {
                    secret = new String(((PasswordCallback) callbacks[i]).getPassword());
                } else if (callbacks[i] instanceof AuthorizeCallback) {
                    authorize = (AuthorizeCallback) callbacks[i];
                }
            }
            boolean known = MessageDigest.isEqual(user, name.getBytes(StandardCharsets.UTF_8))
                & MessageDigest.isEqual(password, secret.getBytes(StandardCharsets.UTF_8));
            if (!known) {
                throw new AuthenticationException("wrong user or password");
            }
            if (authorize != null) {
                authorize.setAuthorized(true);
            }
        }
    }
}
