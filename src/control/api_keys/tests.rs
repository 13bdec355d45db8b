use turnd_storage::Options;

use super::*;
use crate::ids::local_tenant;

fn record() -> ApiKeyRecord {
    ApiKeyRecord {
        key_id: "abc".to_owned(),
        label: "backend".to_owned(),
        tenant: local_tenant(),
        created_at: Timestamp::from_secs(60),
        last_used_at: Some(Timestamp::from_secs(120)),
        sha256: [0xa5; 32],
    }
}

fn open(folder: &tempfile::TempDir) -> Store {
    Store::open(folder.path(), Options::default()).unwrap()
}

#[tokio::test]
async fn a_record_is_read_as_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let documents = ApiKeyDocuments::new(store.clone());
    documents.put(&record()).await.unwrap();
    assert_eq!(documents.load().unwrap(), [record()]);

    let text = store.document("api-keys/abc").unwrap().unwrap();
    let expected = format!(
        concat!(
            r#"{{"label":"backend","tenant":"default","created_at":"1970-01-01T00:01:00.000Z","#,
            r#""last_used_at":"1970-01-01T00:02:00.000Z","sha256":"{}"}}"#
        ),
        "a5".repeat(32)
    );
    assert_eq!(text, expected);
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let short =
        r#"{"label":"","tenant":"default","created_at":"1970-01-01T00:01:00.000Z","sha256":"a5"}"#;
    for text in ["", "{}", short, &short.replace("a5", &"\u{e9}".repeat(32))] {
        store.put_document("api-keys/abc", text.to_owned().into()).await.unwrap();
        let error = ApiKeyDocuments::new(store.clone()).load().unwrap_err();
        assert!(error.to_string().contains("`api-keys/abc`"), "{error}");
    }
}

#[tokio::test]
async fn the_signing_key_is_made_once_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let made = client_token_key(&store, None).await.unwrap();
    assert_eq!(made.expose_secret().len(), 32);
    assert_ne!(made.expose_secret(), [0; 32]);
    let kept = client_token_key(&store, None).await.unwrap();
    assert_eq!(made.expose_secret(), kept.expose_secret());
}

#[tokio::test]
async fn a_given_signing_key_wins_and_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let given = SecretString::from("a key that the operator has chosen");
    let key = client_token_key(&store, Some(&given)).await.unwrap();
    assert_eq!(key.expose_secret(), given.expose_secret().as_bytes());
    assert_eq!(store.document("client-token-key").unwrap(), None);
}

#[tokio::test]
async fn a_damaged_signing_key_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    for text in ["", "!", "AAAA"] {
        store.put_document("client-token-key", text.into()).await.unwrap();
        assert!(client_token_key(&store, None).await.is_err());
        assert_eq!(store.document("client-token-key").unwrap().unwrap(), text);
    }
}
