//! Why a handshake failed, in words that say what to do.

use rustls::{AlertDescription, CertificateError, Error};
use std::io;

/// The error of rustls in an error of a stream.
fn of_rustls(error: &io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref::<Error>()
}

/// What a server says of a client whose handshake failed.
pub(super) fn at_server(error: &io::Error) -> String {
    let Some(reason) = of_rustls(error) else {
        return format!("the connection ended during the handshake of TLS: {error}");
    };
    match reason {
        Error::NoCertificatesPresented => {
            "the client has no certificate, and --tls-ca requires one: give it one that this CA signed".to_owned()
        }
        Error::InvalidCertificate(why) => format!("the client's certificate {}", wrong(why)),
        Error::AlertReceived(alert) => format!("the client refuses this server's certificate: {}", told(*alert)),
        Error::InvalidMessage(_) => {
            "the client does not speak TLS: give it a target grpcs://, or a `tenon proxy`".to_owned()
        }
        other => format!("the handshake of TLS failed: {other}"),
    }
}

/// What a client says of a server whose handshake failed.
pub(super) fn at_client(error: &io::Error, host: &str) -> String {
    let Some(reason) = of_rustls(error) else {
        return format!("the server ended the handshake of TLS: {error}; does it speak TLS?");
    };
    match reason {
        Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => format!(
            "the server's certificate is not for host '{host}': {reason}; use a name that it has, or give the server a \
             certificate with this name"
        ),
        Error::InvalidCertificate(why) => format!("the server's certificate {}", wrong(why)),
        Error::AlertReceived(alert) => told(*alert),
        Error::InvalidMessage(_) => {
            "the server does not speak TLS: expected a target grpc://".to_owned()
        }
        other => format!("the handshake of TLS failed: {other}"),
    }
}

fn wrong(why: &CertificateError) -> String {
    match why {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "has expired: renew it".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "is not valid yet: compare the clocks of both machines".to_owned()
        }
        // An authority may have the name of another, and not its key.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "is not signed by an authority of the file that --tls-ca names".to_owned()
        }
        other => format!("is refused: {other}"),
    }
}

/// What an alert of the other side means.
fn told(alert: AlertDescription) -> String {
    let meaning = match alert {
        AlertDescription::CertificateRequired => {
            "it requires a certificate: give one by --tls-cert and --tls-key"
        }
        AlertDescription::UnknownCA | AlertDescription::DecryptError => {
            "it does not know the authority that signed the certificate"
        }
        AlertDescription::CertificateExpired => "the certificate has expired",
        AlertDescription::BadCertificate => {
            "the certificate is not for the name by which this side is called, or is damaged"
        }
        _ => "it ended the handshake",
    };
    format!("{meaning} (alert {alert:?})")
}
