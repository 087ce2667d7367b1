//! IP literals in URLs are refused before anything is sent.

use net::{Limits, NetErrorKind};
use wire::ErrorCode;

use crate::support::{Stub, client, error_of, get};

/// Each URL is refused, however it is spelled.
const REFUSED: &[&str] = &[
    "http://0.0.0.0/",
    "http://0/",
    "http://0.1.2.3/",
    "http://10.0.0.1/",
    "http://10.255.255.255:8080/",
    "http://100.64.0.1/",
    "http://100.127.255.254/",
    "http://127.0.0.1/",
    "http://127.1/",
    "http://127.0.1/",
    "http://127.255.255.254/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.1/",
    "http://0177.0.0.1/",
    "http://017700000001/",
    "http://127.0.0.1./",
    "http://%31%32%37.0.0.1/",
    "http://１２７.０.０.１/",
    "http://127。0。0。1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://169.254.0.1/",
    "http://0xA9FEA9FE/",
    "http://2852039166/",
    "http://172.16.0.1/",
    "http://172.31.255.255/",
    "http://192.0.0.1/",
    "http://192.0.0.170/",
    "http://192.0.2.1/",
    "http://192.88.99.1/",
    "http://192.168.0.1/",
    "http://192.168.1.1:443/",
    "http://198.18.0.1/",
    "http://198.19.255.255/",
    "http://198.51.100.7/",
    "http://203.0.113.9/",
    "http://224.0.0.1/",
    "http://239.255.255.250/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    "http://[::]/",
    "http://[::1]/",
    "http://[0:0:0:0:0:0:0:1]:9000/",
    "http://[::127.0.0.1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::ffff:10.0.0.1]/",
    "http://[::ffff:169.254.169.254]/",
    "http://[::ffff:0:127.0.0.1]/",
    "http://[64:ff9b::127.0.0.1]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[64:ff9b:1::10.0.0.1]/",
    "http://[64:ff9b:1:7f00:0:100::]/",
    "http://[100::1]/",
    "http://[2001::1]/",
    "http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/",
    "http://[2001:1ff::1]/",
    "http://[2001:db8::1]/",
    "http://[2002:7f00:1::]/",
    "http://[2002:a00:1::1]/",
    "http://[2002:a9fe:a9fe::]/",
    "http://[3fff::1]/",
    "http://[fc00::1]/",
    "http://[fd12:3456:789a::1]/",
    "http://[fe80::1]/",
    "http://[fe80::1%25eth0]/",
    "http://[fe80::1%eth0]/",
    "http://[febf::1]/",
    "http://[fec0::1]/",
    "http://[ff02::1]/",
    "http://[ff0e::1]/",
    "http://[4000::1]/",
    "http://evil@127.0.0.1/",
    "http://evil:pw@93.184.215.14/",
    "http://127.0.0.1\\@93.184.215.14/",
    "http://93.184.215.14:0/",
    "http://:80/",
    "http://",
    "//93.184.215.14/",
    "ftp://93.184.215.14/",
    "file:///etc/passwd",
    "gopher://93.184.215.14/",
    "data:text/plain,x",
    "unix:///var/run/x.sock",
    "javascript:alert(1)",
    "",
];

#[tokio::test]
async fn private_literals_are_rejected_in_every_spelling() {
    let resolver = Stub::new(&[&["127.0.0.1"]]);
    let client = client(&resolver, &[]);
    assert!(REFUSED.len() >= 60);
    for url in REFUSED {
        let error = error_of(&client, url).await;
        assert_eq!(error.kind, NetErrorKind::Refused, "{url}: {error}");
        assert_eq!(error.kind.code(), ErrorCode::EgressRefused);
        assert!(!error.message.contains("evil") && !error.message.contains("pw"), "{error}");
    }
    assert!(resolver.lookups.lock().is_empty(), "a literal is not resolved");
}

#[tokio::test]
async fn local_names_are_checked_by_their_addresses() {
    let resolver = Stub::new(&[&["127.0.0.1"]]);
    let client = client(&resolver, &[]);
    for url in
        ["http://localhost/", "http://LOCALHOST./", "http://x.localhost:8080/", "http://127.0.0.1.nip.io/"]
    {
        let error = error_of(&client, url).await;
        assert_eq!(error.kind, NetErrorKind::Refused, "{url}");
        assert!(
            error.message.contains("may not be called: this machine; the operator may allow "),
            "{error}"
        );
        assert!(error.message.ends_with(" with SERVICE_EGRESS_ALLOW"), "{error}");
    }
}

#[tokio::test]
async fn a_name_without_an_address_is_unreachable() {
    let client = client(&Stub::new(&[]), &[]);
    let error = get(&client, "http://nowhere.test/", &Limits::default()).await.err().unwrap();
    assert_eq!(error.kind, NetErrorKind::Unreachable);
    assert_eq!(error.message, "nowhere.test does not resolve: no such name");
}
