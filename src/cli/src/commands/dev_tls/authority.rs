//! A certificate authority restricted to one machine's names, and its certificates.

use chrono::{DateTime, Datelike, TimeDelta, Utc};
use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, DistinguishedName, DnType, Error,
    ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, Issuer, KeyPair, KeyUsagePurpose, NameConstraints,
};

/// Validity of a certificate; browsers refuse much longer ones.
pub(super) const LEAF_DAYS: i64 = 365;

const AUTHORITY_DAYS: i64 = 3650;
const NAME: &str = "Callboard development authority";

pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: Option<String>,
}

/// A certificate and its key, both in PEM format.
pub(super) struct Leaf {
    pub(super) certificate: String,
    pub(super) key: String,
}

impl Authority {
    /// Creates an authority that can sign only for names of this machine and the apps domain.
    pub(super) fn new(domain: &str, now: DateTime<Utc>) -> Result<Self, Error> {
        let key = KeyPair::generate()?;
        let params = params(domain, now);
        let certificate = Some(params.self_signed(&key)?.pem());
        Ok(Self { issuer: Issuer::new(params, key), certificate })
    }

    /// Restores an authority from the key that an earlier call created.
    pub(super) fn known(key: &str, domain: &str, now: DateTime<Utc>) -> Result<Self, Error> {
        Ok(Self { issuer: Issuer::new(params(domain, now), KeyPair::from_pem(key)?), certificate: None })
    }

    /// The authority's certificate in PEM format, which clients must trust; empty if an earlier call created it.
    pub(super) fn certificate(&self) -> &str {
        self.certificate.as_deref().unwrap_or_default()
    }

    /// The key in PEM format.
    pub(super) fn key(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// Signs a new server certificate for these names.
    pub(super) fn sign(&self, names: &[String], now: DateTime<Utc>) -> Result<Leaf, Error> {
        let mut params = CertificateParams::new(names.to_vec())?;
        params.distinguished_name = named("Callboard on this machine");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        valid(&mut params, now, LEAF_DAYS);
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Leaf { certificate, key: key.serialize_pem() })
    }
}

fn params(domain: &str, now: DateTime<Utc>) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = named(NAME);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let loopback = [CidrSubnet::V4([127, 0, 0, 0], [255, 0, 0, 0]), CidrSubnet::V6(LOOPBACK, [255; 16])];
    let names = ["localhost", domain].map(|name| GeneralSubtree::DnsName(name.to_owned()));
    let permitted = names.into_iter().chain(loopback.map(GeneralSubtree::IpAddress)).collect();
    params.name_constraints =
        Some(NameConstraints { permitted_subtrees: permitted, excluded_subtrees: Vec::new() });
    valid(&mut params, now, AUTHORITY_DAYS);
    params
}

const LOOPBACK: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

fn named(name: &str) -> DistinguishedName {
    let mut named = DistinguishedName::new();
    named.push(DnType::CommonName, name);
    named
}

/// Validity begins yesterday because clocks differ.
fn valid(params: &mut CertificateParams, now: DateTime<Utc>, days: i64) {
    let day = |day: DateTime<Utc>| {
        let (month, of_month) = (u8::try_from(day.month()), u8::try_from(day.day()));
        rcgen::date_time_ymd(day.year(), month.unwrap_or(1), of_month.unwrap_or(1))
    };
    params.not_before = day(now - TimeDelta::days(1));
    params.not_after = day(now + TimeDelta::days(days));
}
