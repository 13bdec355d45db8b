use super::*;

/// As on a machine with CA certificates.
fn egress() -> Egress {
    Egress { has_roots: true, ..Egress::new(Duration::from_secs(5)) }
}

#[test]
fn without_ca_certificates_only_http_is_called() {
    let egress = Egress { client: without_roots(Client::builder()), has_roots: false };
    assert!(egress.endpoint("http://127.0.0.1:1", "/x").is_ok());
    let refused = egress.endpoint("https://example.com", "/x");
    assert_eq!(refused.unwrap_err(), Refusal::NoRoots);
}

#[test]
fn addresses_of_no_service_are_refused_however_they_are_written() {
    for (address, kind) in [
        ("169.254.169.254", "a link-local"),
        ("169.254.0.1", "a link-local"),
        ("fe80::1", "a link-local"),
        ("febf:ffff::1", "a link-local"),
        ("::ffff:169.254.169.254", "a link-local"),
        ("64:ff9b::169.254.169.254", "a link-local"),
        ("100.100.100.200", "a cloud metadata"),
        ("168.63.129.16", "a cloud metadata"),
        ("fd00:ec2::254", "a cloud metadata"),
        ("fd20:ce::254", "a cloud metadata"),
        ("0.0.0.0", "an unspecified"),
        ("0.1.2.3", "an unspecified"),
        ("::", "an unspecified"),
        ("::ffff:0.0.0.0", "an unspecified"),
        ("224.0.0.1", "a multicast"),
        ("239.255.255.255", "a multicast"),
        ("ff02::1", "a multicast"),
        ("255.255.255.255", "a broadcast"),
        ("::ffff:255.255.255.255", "a broadcast"),
    ] {
        assert_eq!(check(address.parse().unwrap()), Err(Refusal::Address(kind)), "{address}");
    }
}

#[test]
fn public_private_and_loopback_addresses_are_called() {
    for address in [
        "1.1.1.1",
        "127.0.0.1",
        "::1",
        "::ffff:127.0.0.1",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "169.253.255.255",
        "169.255.0.0",
        "223.255.255.255",
        "2606:4700::1111",
        "fd00::1",
        "fec0::1",
        "64:ff9b::1.1.1.1",
    ] {
        assert_eq!(check(address.parse().unwrap()), Ok(()), "{address}");
    }
}

#[test]
fn an_endpoint_is_the_base_with_the_path() {
    for (base, expected) in [
        ("https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"),
        ("https://api.openai.com/v1/", "https://api.openai.com/v1/chat/completions"),
        ("http://127.0.0.1:11434/v1", "http://127.0.0.1:11434/v1/chat/completions"),
        ("http://[::1]:8080", "http://[::1]:8080/chat/completions"),
    ] {
        let url = egress().endpoint(base, "/chat/completions").unwrap();
        assert_eq!(url.as_str(), expected);
    }
}

#[test]
fn an_endpoint_that_may_not_be_called_says_why() {
    for (base, refusal) in [
        ("", Refusal::NotAUrl),
        ("api.openai.com/v1", Refusal::NotAUrl),
        ("http://", Refusal::NotAUrl),
        ("file:///etc/passwd", Refusal::Scheme),
        ("ftp://example.com", Refusal::Scheme),
        ("https://user@example.com", Refusal::UserInfo),
        ("https://:secret@example.com", Refusal::UserInfo),
        ("https://example.com/v1?key=1", Refusal::Query),
        ("https://example.com/v1#top", Refusal::Query),
        ("http://169.254.169.254", Refusal::Address("a link-local")),
        ("http://0xa9fea9fe", Refusal::Address("a link-local")),
        ("http://2852039166", Refusal::Address("a link-local")),
        ("http://[::ffff:a9fe:a9fe]", Refusal::Address("a link-local")),
        ("http://0", Refusal::Address("an unspecified")),
    ] {
        assert_eq!(egress().endpoint(base, "/x").unwrap_err(), refusal, "{base}");
    }
}

#[test]
fn of_a_names_addresses_only_the_allowed_ones_are_connected_to() {
    let at = |address: &str| SocketAddr::new(address.parse().unwrap(), 0);
    let mixed = allowed(vec![at("169.254.169.254"), at("10.0.0.1"), at("::1")]).unwrap();
    assert_eq!(mixed.collect::<Vec<_>>(), [at("10.0.0.1"), at("::1")]);
    let refused = allowed(vec![at("169.254.169.254"), at("fe80::1")]);
    assert_eq!(refused.err(), Some(Refusal::Address("a link-local")));
}

#[tokio::test]
async fn a_name_resolves_through_the_checks() {
    let name: Name = "localhost".parse().unwrap();
    let found: Vec<SocketAddr> = CheckedResolver.resolve(name).await.unwrap().collect();
    assert!(!found.is_empty() && found.iter().all(|address| address.ip().is_loopback()));
}
