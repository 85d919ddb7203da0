//! Servers with TLS, tokens, limits and an audit log, seen by clients. They load no plugin.

use super::*;
use crate::{
    dial::Access,
    proxy::{Proxy, ProxyOptions},
    session::Session,
    tls::Identity,
};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SanType, date_time_ymd};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
};
use tempfile::TempDir;
use tenon_framework::Code;
use tenon_proto::{ConfigProto, GraphDef, NodeDef};
use tenon_runtime::{Runtime, RuntimeOptions};

/// The token of a client, and that of a task.
const ADA: &str = "client ada ada-ada-ada-ada-ada-ada\n";
const TASK: &str = "worker task task-task-task-task-task\n";

/// An authority, with what it signed, in files.
struct Authority {
    folder: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("ca.pem"), certificate.pem()).unwrap();
        Authority { folder, issuer: Issuer::new(params, key) }
    }

    fn ca(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// A certificate for a host, with changes.
    fn signs(&self, host: &str, change: impl FnOnce(&mut CertificateParams)) -> Identity {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        change(&mut params);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let number = fs::read_dir(self.folder.path()).unwrap().count();
        let cert = self.folder.path().join(format!("{number}.pem"));
        fs::write(&cert, certificate.pem()).unwrap();
        let secret = cert.with_extension("key");
        fs::write(&secret, key.serialize_pem()).unwrap();
        Identity { cert, key: secret }
    }
}

/// A server, its runtime, and its files.
struct Served {
    server: Server,
    folder: TempDir,
    _runtime: Runtime,
}

impl Served {
    fn new(change: impl FnOnce(&mut ServerOptions, &Path)) -> Served {
        let (runtime, _) =
            Runtime::new(RuntimeOptions::with_plugins(Vec::<String>::new())).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let audit = Some(AuditOptions::in_file(folder.path().join("audit")));
        let mut options = ServerOptions { audit, ..ServerOptions::default() };
        change(&mut options, folder.path());
        let server = Server::start(Worker::new(&runtime), &options).unwrap();
        Served { server, folder, _runtime: runtime }
    }

    fn with_tls(authority: &Authority, host: &str, ca: Option<PathBuf>) -> Served {
        let identity = authority.signs(host, |_| ());
        Served::new(|options, _| options.tls = Some(ServerTls { identity, ca }))
    }

    fn open(&self, scheme: &str, access: &Access) -> Result<Session, ClusterError> {
        let target = format!("{scheme}://{}", self.server.address());
        Session::connect_as(&target, GraphDef::default(), ConfigProto::default(), access)
    }

    /// The events of the audit log with this name.
    fn events(&self, what: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.folder.path().join("audit")).unwrap();
        let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        events.filter(|event| event["what"] == what).collect()
    }

    /// The reason of the last refused handshake, which the server may write later than the client fails.
    fn refused(&self) -> String {
        for _ in 0..200 {
            if let Some(event) = self.events("handshake").last() {
                assert_eq!(event["outcome"], "UNAUTHENTICATED");
                return event["why"].as_str().unwrap_or_default().to_owned();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("the audit log has no handshake")
    }
}

fn trusting(ca: PathBuf, identity: Option<Identity>) -> Access {
    Access { tls: Some(ClientTls { ca, identity }), ..Access::default() }
}

fn token(folder: &Path, text: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let file = folder.join("tokens");
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    file
}

fn with_token(file: PathBuf) -> Access {
    Access { token_file: Some(file), ..Access::default() }
}

/// The error of a client, with both sides' words: those of the client and those of the server.
fn fails(served: &Served, access: &Access, client: &str, server: &str) {
    let error = served.open("grpcs", access).err().expect("it is refused");
    assert_eq!(error.code(), Code::UNAVAILABLE, "{error}");
    assert!(error.to_string().contains(client), "{error}");
    let refused = served.refused();
    assert!(refused.contains(server), "{refused}");
}

#[test]
fn a_session_over_tls_with_certificates_on_both_sides() {
    let authority = Authority::new();
    let served = Served::with_tls(&authority, "127.0.0.1", Some(authority.ca()));
    let own = authority.signs("ada.example", |_| ());
    let session = served.open("grpcs", &trusting(authority.ca(), Some(own))).unwrap();
    session.devices().unwrap();
    session.close().unwrap();
    let created = served.events("CreateSession");
    assert_eq!((&created[0]["who"], &created[0]["outcome"]), (&"ada.example".into(), &"OK".into()));
    assert_eq!(served.events("CloseSession").len(), 1);
}

#[test]
fn a_client_without_a_certificate_is_refused() {
    let authority = Authority::new();
    let served = Served::with_tls(&authority, "127.0.0.1", Some(authority.ca()));
    let access = trusting(authority.ca(), None);
    fails(&served, &access, "the server requires a certificate", "the client has no certificate");
}

#[test]
fn a_client_of_another_authority_is_refused() {
    let (authority, other) = (Authority::new(), Authority::new());
    let served = Served::with_tls(&authority, "127.0.0.1", Some(authority.ca()));
    let access = trusting(authority.ca(), Some(other.signs("eve", |_| ())));
    fails(&served, &access, "does not know the authority", "is not signed by an authority");
}

#[test]
fn an_expired_certificate_of_a_client_is_refused() {
    let authority = Authority::new();
    let served = Served::with_tls(&authority, "127.0.0.1", Some(authority.ca()));
    let expired = authority.signs("ada", |params| {
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(2001, 1, 1);
    });
    let access = trusting(authority.ca(), Some(expired));
    fails(&served, &access, "certificate has expired", "the client's certificate has expired");
}

#[test]
fn an_expired_certificate_of_a_server_is_refused() {
    let authority = Authority::new();
    let identity = authority.signs("127.0.0.1", |params| {
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(2001, 1, 1);
    });
    let served = Served::new(|options, _| options.tls = Some(ServerTls { identity, ca: None }));
    let access = trusting(authority.ca(), None);
    let said = "the client refuses this server's certificate: the certificate has expired";
    fails(&served, &access, "the server's certificate has expired", said);
}

#[test]
fn a_server_with_another_name_is_refused() {
    let authority = Authority::new();
    let served = Served::with_tls(&authority, "elsewhere.example", None);
    let access = trusting(authority.ca(), None);
    fails(&served, &access, "is not for host '127.0.0.1'", "is not for the name");
}

#[test]
fn a_server_of_another_authority_is_refused() {
    let (authority, other) = (Authority::new(), Authority::new());
    let served = Served::with_tls(&authority, "127.0.0.1", None);
    let access = trusting(other.ca(), None);
    fails(&served, &access, "is not signed by an authority", "it does not know the authority");
}

#[test]
fn a_client_that_speaks_no_tls_is_told() {
    let authority = Authority::new();
    let served = Served::with_tls(&authority, "127.0.0.1", None);
    let error = served.open("grpc", &Access::default()).err().expect("it is refused");
    assert_eq!(error.code(), Code::UNAVAILABLE, "{error}");
    assert!(served.refused().contains("does not speak TLS"), "{}", served.refused());
    let without = served.open("grpcs", &Access::default()).err().expect("it has no authority");
    assert!(without.to_string().contains("--tls-ca"), "{without}");
    let plain = Served::new(|_, _| ());
    let error = plain.open("grpcs", &trusting(authority.ca(), None)).err().expect("no TLS there");
    assert_eq!(error.code(), Code::UNAVAILABLE, "{error}");
    assert!(error.to_string().contains("TLS"), "{error}");
}

#[test]
fn certificates_are_renewed_while_a_server_runs() {
    let (first, second) = (Authority::new(), Authority::new());
    let identity = first.signs("127.0.0.1", |_| ());
    let tls = ServerTls { identity: identity.clone(), ca: None };
    let served = Served::new(|options, _| options.tls = Some(tls));
    served.open("grpcs", &trusting(first.ca(), None)).unwrap();
    let renewed = second.signs("127.0.0.1", |_| ());
    // While only one of the two files is new, the former pair stays in use.
    fs::copy(&renewed.cert, &identity.cert).unwrap();
    served.server.reload();
    served.open("grpcs", &trusting(first.ca(), None)).unwrap();
    fs::copy(&renewed.key, &identity.key).unwrap();
    fs::OpenOptions::new()
        .append(true)
        .open(&identity.key)
        .unwrap()
        .set_modified(std::time::SystemTime::now())
        .unwrap();
    served.server.reload();
    served.open("grpcs", &trusting(second.ca(), None)).unwrap();
}

#[test]
fn roles_of_a_certificate_are_kept() {
    let authority = Authority::new();
    let served = Served::with_tls(&authority, "127.0.0.1", Some(authority.ca()));
    let task = authority.signs("task", |params| {
        params.subject_alt_names.push(SanType::URI("tenon:role:worker".try_into().unwrap()));
    });
    let error = served.open("grpcs", &trusting(authority.ca(), Some(task))).err().unwrap();
    assert_eq!(error.code(), Code::PERMISSION_DENIED, "{error}");
    assert!(error.to_string().contains("certificate of task does not have role client"), "{error}");
}

#[test]
fn tokens_have_roles() {
    let served = Served::new(|options, folder| {
        options.token_file = Some(token(folder, &[ADA, TASK].concat()));
    });
    let folder = tempfile::tempdir().unwrap();
    let ada = token(folder.path(), ADA);
    served.open("grpc", &with_token(ada.clone())).unwrap().close().unwrap();
    assert_eq!(served.events("CreateSession")[0]["who"], "ada");
    let none = served.open("grpc", &Access::default()).err().unwrap();
    assert_eq!(none.code(), Code::UNAUTHENTICATED, "{none}");
    assert!(none.to_string().contains("authorization: Bearer"), "{none}");
    // The word `client` is what a client's file says of it; the server's file decides.
    let task = token(folder.path(), &TASK.replace("worker", "client"));
    let denied = served.open("grpc", &with_token(task.clone())).err().unwrap();
    assert_eq!(denied.code(), Code::PERMISSION_DENIED, "{denied}");
    assert!(denied.to_string().contains("token of task does not have role client"), "{denied}");
    fs::write(&task, ADA.replace("ada-ada", "eve-eve")).unwrap();
    let unknown = served.open("grpc", &with_token(task)).err().unwrap();
    assert_eq!(unknown.code(), Code::UNAUTHENTICATED, "{unknown}");
    let refused: Vec<Value> = served.events("CreateSession").split_off(1);
    let outcomes: Vec<&str> =
        refused.iter().filter_map(|event| event["outcome"].as_str()).collect();
    assert_eq!(outcomes, ["UNAUTHENTICATED", "PERMISSION_DENIED", "UNAUTHENTICATED"]);
    // A token that is removed from the file is refused after a reload.
    let ada = token(folder.path(), ADA);
    fs::write(served.folder.path().join("tokens"), TASK).unwrap();
    served.server.reload();
    let gone = served.open("grpc", &with_token(ada)).err().unwrap();
    assert_eq!(gone.code(), Code::UNAUTHENTICATED, "{gone}");
}

/// A graph of so many nodes without inputs.
fn graph(nodes: usize) -> GraphDef {
    let node =
        |number| NodeDef { name: format!("n{number}"), op: "NoOp".into(), ..NodeDef::default() };
    GraphDef { node: (0..nodes).map(node).collect(), ..GraphDef::default() }
}

#[test]
fn limits_of_a_client_name_their_knob() {
    let clients = ClientLimits { sessions: 1, graph_nodes: 8, request_bytes: 4096, steps: 4 };
    let served = Served::new(|options, _| options.clients = clients);
    let target = format!("grpc://{}", served.server.address());
    let open = |nodes| Session::connect(&target, graph(nodes)).map(Some);
    let refused = |error: ClusterError, knob: &str| {
        assert_eq!(error.code(), Code::RESOURCE_EXHAUSTED, "{error}");
        assert!(error.to_string().contains(knob), "{error}");
    };
    refused(open(9).err().unwrap(), "--client-graph-nodes");
    refused(open(1000).err().unwrap(), "--client-bytes");
    let session = open(6).unwrap().unwrap();
    refused(open(1).err().unwrap(), "--client-sessions");
    refused(session.extend(graph(3)).unwrap_err(), "--client-graph-nodes");
    session.close().unwrap();
    open(1).unwrap();
    let outcomes = served.events("CreateSession");
    assert!(
        outcomes
            .iter()
            .all(|event| event["from"].as_str().is_some_and(|it| it.starts_with("127.")))
    );
    let digest = outcomes.last().unwrap()["graph"].as_str().unwrap();
    assert!(digest.starts_with("sha256:") && digest.len() == 71, "{digest}");
}

#[test]
fn a_proxy_gives_plain_clients_tls_and_a_token() {
    let authority = Authority::new();
    let identity = authority.signs("localhost", |_| ());
    let served = Served::new(|options, folder| {
        options.tls = Some(ServerTls { identity, ca: Some(authority.ca()) });
        options.token_file = Some(token(folder, ADA));
    });
    let folder = tempfile::tempdir().unwrap();
    let mut access = trusting(authority.ca(), Some(authority.signs("sidecar", |_| ())));
    access.token_file = Some(token(folder.path(), ADA));
    let to = format!("localhost:{}", served.server.address().port());
    let proxy = Proxy::start(&ProxyOptions::to(&to, access.clone())).unwrap();
    let target = format!("grpc://{}", proxy.address());
    let session = Session::connect(&target, graph(3)).unwrap();
    session.extend(GraphDef::default()).unwrap();
    let missing = session.run(&[], &["x"], &[], None).unwrap_err();
    assert_ne!(
        missing.code(),
        Code::UNAVAILABLE,
        "the server's own error comes through: {missing}"
    );
    session.close().unwrap();
    assert_eq!(served.events("CreateSession")[0]["who"], "ada");
    access.token_file = None;
    let without = Proxy::start(&ProxyOptions::to(&to, access.clone())).unwrap();
    let error = Session::connect(&format!("grpc://{}", without.address()), graph(3)).err().unwrap();
    assert_eq!(error.code(), Code::UNAUTHENTICATED, "{error}");
    let nobody = Proxy::start(&ProxyOptions::to("127.0.0.1:1", Access::default())).unwrap();
    let error = Session::connect(&format!("grpc://{}", nobody.address()), graph(3)).err().unwrap();
    assert_eq!(error.code(), Code::UNAVAILABLE, "{error}");
    assert!(error.to_string().contains("127.0.0.1:1 cannot be reached"), "{error}");
    let open =
        ProxyOptions { listen: "0.0.0.0:0".parse().unwrap(), ..ProxyOptions::to(&to, access) };
    let error = Proxy::start(&open).err().unwrap();
    assert_eq!(error.code(), Code::FAILED_PRECONDITION, "{error}");
}
