use secrecy::ExposeSecret as _;

use super::*;
use crate::auth::api_key::NewApiKey;
use crate::control::api_keys::ApiKeyRecord;
use crate::ids::{OwnerId, local_tenant};
use crate::protocol::input::Identity;

#[test]
fn a_bearer_token_stands_alone_behind_one_space() {
    for (value, token) in [
        ("Bearer abc", Some("abc")),
        ("bearer abc", Some("abc")),
        ("BEARER a.b-c_d~+/=", Some("a.b-c_d~+/=")),
        ("Bearer", None),
        ("Bearer ", None),
        ("Bearer  abc", None),
        ("Bearer abc ", None),
        ("Bearer abc def", None),
        ("Bearer\tabc", None),
        ("Bearer abc,", Some("abc,")),
        (" Bearer abc", None),
        ("Bearerabc", None),
        ("Basic abc", None),
        ("Token abc", None),
        ("abc", None),
        ("", None),
    ] {
        assert_eq!(bearer([value.as_bytes()]), token, "{value:?}");
    }
    assert_eq!(bearer([b"Bearer \xff".as_slice()]), None);
    assert_eq!(bearer(["Bearer \u{e9}".as_bytes()]), None);
}

#[test]
fn two_credentials_are_none() {
    assert_eq!(bearer([]), None);
    assert_eq!(bearer([b"Bearer a".as_slice(), b"Bearer a"]), None);
}

#[test]
fn a_credential_is_good_for_its_own_api_alone() {
    let now = Timestamp::from_secs(1_000_000);
    let key = NewApiKey::generate().unwrap();
    let record = ApiKeyRecord {
        key_id: key.key_id.clone(),
        label: String::new(),
        tenant: local_tenant(),
        created_at: now,
        last_used_at: None,
        sha256: {
            use sha2::Digest as _;
            sha2::Sha256::digest(key.text.expose_secret()).into()
        },
    };
    let authenticator = Authenticator {
        api_keys: ApiKeys::new(vec![record], None).unwrap(),
        client_tokens: ClientTokens::new(&[1; 32], None).unwrap(),
        blob_urls: BlobUrls::new(&[1; 32], None).unwrap(),
    };
    let identity = Identity { id: OwnerId::parse("zoe").unwrap(), metadata: None };
    let minted = authenticator.client_tokens.mint(&local_tenant(), &identity, 600, now);
    let (token, key_text) = (minted.unwrap().0, key.text.expose_secret());

    let client = authenticator.client(Some(&token), now).unwrap();
    assert_eq!(client.identity, identity);
    assert_eq!(client.tenant, local_tenant());
    let machine = authenticator.machine(Some(key_text), now).unwrap();
    assert_eq!((machine.tenant, machine.key_id), (local_tenant(), key.key_id.clone()));
    assert_eq!(authenticator.client(Some(key_text), now), Err(Refused));
    assert_eq!(authenticator.machine(Some(&token), now), Err(Refused));
    assert_eq!(authenticator.client(None, now), Err(Refused));
    assert_eq!(authenticator.machine(None, now), Err(Refused));
}
