//! A private certificate authority for one test, and the certificates that it signs.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, KeyUsagePurpose, date_time_ymd,
};

/// A certificate authority that only its own clients trust.
#[derive(Debug)]
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A server's certificate and its key, both in PEM.
#[derive(Debug, Clone)]
pub struct Certificate {
    /// The certificate alone.
    pub chain: String,
    /// Its private key.
    pub key: String,
}

impl Authority {
    /// Creates an authority.
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names are good names");
        params.distinguished_name.push(rcgen::DnType::CommonName, "an authority of a test's own");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("the machine has randomness");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("it can be signed");
        Self { issuer }
    }

    /// The authority's certificate in PEM, for its clients.
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// A certificate for a server with these names or addresses.
    pub fn certify(&self, names: &[&str]) -> Certificate {
        self.sign(names, 2100)
    }

    /// The same, but expired years ago.
    pub fn certify_expired(&self, names: &[&str]) -> Certificate {
        self.sign(names, 2021)
    }

    fn sign(&self, names: &[&str], until: i32) -> Certificate {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("they are names");
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        let key = KeyPair::generate().expect("the machine has randomness");
        let certificate = params.signed_by(&key, &self.issuer).expect("it can be signed");
        Certificate { chain: certificate.pem(), key: key.serialize_pem() }
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}
