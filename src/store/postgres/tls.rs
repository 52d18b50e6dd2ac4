//! TLS of the connections to PostgreSQL that `tokio_postgres` opens, set by libpq's options `sslmode`, `sslrootcert`, `sslcert` and
//! `sslkey`. The connections of sqlx, which SeaORM uses, take the same options.
//!
//! `prefer`, which is the default, and `require` encrypt and trust any server; `prefer` continues unencrypted if the server has no TLS.
//! `verify-ca` requires a certificate of a trusted authority, `verify-full` a certificate that also has the server's name. If `sslrootcert`
//! names authorities, this module trusts no others, as libpq does; sqlx trusts public authorities in addition.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error as TlsError, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
    server::ParsedCertificate,
};
use sqlx::postgres::PgSslMode;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;
use url::Url;

use crate::store::{Error, Result};

pub(super) fn mode(mode: PgSslMode) -> SslMode {
    match mode {
        PgSslMode::Disable | PgSslMode::Allow => SslMode::Disable,
        PgSslMode::Prefer => SslMode::Prefer,
        PgSslMode::Require | PgSslMode::VerifyCa | PgSslMode::VerifyFull => SslMode::Require,
    }
}

/// Creates the TLS connector for an `sslmode`. The query parameters of `url` name the certificates, in sqlx's form. At each handshake the
/// connector stores in `unreadable_certificate` whether webpki, the library that verifies certificates, cannot read the server's
/// certificate, such as a certificate of X.509 version 1.
pub(super) fn connector(mode: PgSslMode, url: &Url, unreadable_certificate: &Arc<AtomicBool>) -> Result<MakeRustlsConnect> {
    let provider = Arc::new(ring::default_provider());
    let given = |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| Pem::of(&value));
    let config = ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions().map_err(unusable)?;
    let verifying = matches!(mode, PgSslMode::VerifyCa | PgSslMode::VerifyFull);
    let mut roots = RootCertStore::empty();
    match given("sslrootcert") {
        Some(pem) if verifying => {
            for root in pem.certificates("sslrootcert")? {
                roots.add(root).map_err(unusable)?;
            }
        }
        _ => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
    }
    let chain = if verifying {
        Some(WebPkiServerVerifier::builder_with_provider(roots.into(), provider.clone()).build().map_err(unusable)?)
    } else {
        None
    };
    let named = matches!(mode, PgSslMode::VerifyFull);
    let verifier = Verifier { provider, chain, named, unreadable_certificate: unreadable_certificate.clone() };
    let config = config.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    let config = match (given("sslcert"), given("sslkey")) {
        (Some(certificate), Some(key)) => {
            let given = config.with_client_auth_cert(certificate.certificates("sslcert")?, key.key("sslkey")?);
            given.map_err(|error| match unversioned(&error) {
                true => Error::Unavailable("what `sslcert` names is a certificate of X.509 version 1; make it one of version 3".to_owned()),
                false => unusable(error),
            })?
        }
        (None, None) => config.with_no_client_auth(),
        _ => return Err(Error::Unavailable("the database URL names one of `sslcert` and `sslkey`; both are needed".to_owned())),
    };
    Ok(MakeRustlsConnect::new(config))
}

fn unusable(error: impl std::fmt::Display) -> Error {
    Error::Unavailable(format!("no TLS: {error}"))
}

/// A certificate or key: its PEM text, or the file that contains it.
enum Pem {
    Text(String),
    File(String),
}

impl Pem {
    fn of(certificate: &str) -> Self {
        certificate.strip_prefix("file: ").map_or_else(|| Self::Text(certificate.to_owned()), |path| Self::File(path.to_owned()))
    }

    fn read(&self, name: &str) -> Result<Vec<u8>> {
        match self {
            Self::Text(text) => Ok(text.clone().into_bytes()),
            Self::File(path) => {
                std::fs::read(path).map_err(|error| Error::Unavailable(format!("`{path}`, which `{name}` names, cannot be read: {error}")))
            }
        }
    }

    fn certificates(&self, name: &str) -> Result<Vec<CertificateDer<'static>>> {
        let found: Vec<_> = CertificateDer::pem_slice_iter(&self.read(name)?).collect::<std::result::Result<_, _>>().map_err(unusable)?;
        if found.is_empty() {
            return Err(Error::Unavailable(format!("what `{name}` names has no certificate in PEM")));
        }
        Ok(found)
    }

    fn key(&self, name: &str) -> Result<PrivateKeyDer<'static>> {
        PrivateKeyDer::from_pem_slice(&self.read(name)?)
            .map_err(|error| Error::Unavailable(format!("what `{name}` names has no private key in PEM: {error}")))
    }
}

/// Certificate verifier: checks what the `sslmode` requires.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    /// Verifies that the certificate comes from a trusted authority; `None` if the `sslmode` does not require that.
    chain: Option<Arc<WebPkiServerVerifier>>,
    /// Whether the certificate has to have the server's name.
    named: bool,
    unreadable_certificate: Arc<AtomicBool>,
}

/// The error for a certificate of X.509 version 1, with advice.
const OLD: &str = "the server's certificate is of X.509 version 1, which cannot be verified: make it one of version 3, with the server's name \
    (`openssl x509 -req … -extfile <(echo subjectAltName=DNS:HOST)`), or encrypt without verifying (sslmode=require)";

/// Returns the error of webpki, the library that verifies certificates, if it cannot read a certificate; `None` if it can. webpki reads
/// only X.509 version 3.
fn unreadable(certificate: &CertificateDer<'_>) -> Option<TlsError> {
    ParsedCertificate::try_from(certificate).err().map(explained)
}

fn unversioned(error: &TlsError) -> bool {
    format!("{error:?}").contains("UnsupportedCertVersion")
}

/// Replaces the error for a certificate of X.509 version 1 by an error that advises what to do. Returns every other error unchanged. The
/// error is recognised by its text, since rustls gives the reason only there.
fn explained(error: TlsError) -> TlsError {
    if unversioned(&error) { TlsError::General(OLD.to_owned()) } else { error }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, TlsError> {
        let unreadable = unreadable(certificate);
        self.unreadable_certificate.store(unreadable.is_some(), Ordering::Relaxed);
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        if let Some(error) = unreadable {
            return Err(error);
        }
        match chain.verify_server_cert(certificate, between, name, ocsp, now) {
            Err(TlsError::InvalidCertificate(CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }))
                if !self.named =>
            {
                Ok(ServerCertVerified::assertion())
            }
            got => got,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, TlsError> {
        if self.proves_nothing(certificate) {
            return Ok(HandshakeSignatureValid::assertion());
        }
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, TlsError> {
        if self.proves_nothing(certificate) {
            return Ok(HandshakeSignatureValid::assertion());
        }
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl Verifier {
    /// Returns whether the signature of a TLS handshake is accepted unverified. That is so if the `sslmode` requires no verified
    /// certificate and webpki cannot read this certificate, which contains the key for verifying the signature. With such an `sslmode` an
    /// attacker between client and server can present another certificate anyway, so a check of the signature would prove nothing. SCRAM
    /// channel binding does not prove the server's identity in this case.
    fn proves_nothing(&self, certificate: &CertificateDer<'_>) -> bool {
        self.chain.is_none() && unreadable(certificate).is_some()
    }
}
