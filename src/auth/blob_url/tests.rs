use super::*;
use crate::ids::{SessionId, TenantId};

const KEY: &[u8] = &[7; 32];
const OTHER_KEY: &[u8] = &[8; 32];
const SIGNED_AT: Timestamp = Timestamp::from_millis(1_000_000_000);

fn grant(tenant: &str, session: &str, bytes: &[u8]) -> BlobGrant {
    let session = SessionKey {
        tenant: TenantId::parse(tenant).unwrap(),
        session: SessionId::parse(session).unwrap(),
    };
    BlobGrant::new(session, BlobHash::of(bytes), SIGNED_AT)
}

#[test]
fn a_grant_is_good_for_ten_minutes() {
    let urls = BlobUrls::new(KEY, None).unwrap();
    let grant = grant("default", "s1", b"x");
    assert_eq!(grant.expires_at, 1_000_600);
    let signature = urls.sign(&grant).unwrap();
    let at = |secs| SIGNED_AT.plus(Duration::from_secs(secs));
    assert!(urls.verify(&grant, &signature, at(0)));
    assert!(urls.verify(&grant, &signature, at(599)));
    assert!(!urls.verify(&grant, &signature, at(600)));
    let longer = BlobGrant { expires_at: grant.expires_at + 1, ..grant };
    assert!(!urls.verify(&longer, &signature, at(0)));
}

#[test]
fn a_signature_stands_for_one_blob_of_one_session_of_one_tenant() {
    let urls = BlobUrls::new(KEY, None).unwrap();
    let signature = urls.sign(&grant("default", "s1", b"x")).unwrap();
    for other in
        [grant("other", "s1", b"x"), grant("default", "s2", b"x"), grant("default", "s1", b"y")]
    {
        assert!(!urls.verify(&other, &signature, SIGNED_AT), "{other:?}");
    }
    for wrong in ["", "x", "\u{e9}", &signature.to_lowercase(), &format!("{signature}A")] {
        assert!(!urls.verify(&grant("default", "s1", b"x"), wrong, SIGNED_AT), "{wrong}");
    }
}

#[test]
fn the_previous_key_is_good_and_the_key_of_the_tokens_is_none() {
    let grant = grant("default", "s1", b"x");
    let old = BlobUrls::new(OTHER_KEY, None).unwrap().sign(&grant).unwrap();
    assert!(!BlobUrls::new(KEY, None).unwrap().verify(&grant, &old, SIGNED_AT));
    assert!(BlobUrls::new(KEY, Some(OTHER_KEY)).unwrap().verify(&grant, &old, SIGNED_AT));
    let token_key = EncodingKey::from_secret(KEY);
    let signed = sign(grant.text().as_bytes(), &token_key).unwrap();
    assert!(!BlobUrls::new(KEY, None).unwrap().verify(&grant, &signed, SIGNED_AT));
}
