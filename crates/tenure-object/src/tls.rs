/// Installs a cryptography provider for TLS: a client that is built without one panics.
///
/// A program that uses this crate may have installed its own provider. That one then stays.
pub(crate) fn prepare() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Another thread may have installed one in between, which is just as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}
