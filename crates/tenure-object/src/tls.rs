/// Makes sure that TLS has its cryptography: a client that is built without it panics.
///
/// Whoever uses this crate may have chosen a provider of their own, and then it is theirs.
pub(crate) fn prepare() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Somebody may have been faster just now, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}
