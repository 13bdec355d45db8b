use std::path::Path;

use turnd_storage::{Options, Store};

use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_000_000_030_000);

fn record(key: &NewApiKey) -> ApiKeyRecord {
    ApiKeyRecord {
        key_id: key.key_id.clone(),
        label: "first".to_owned(),
        tenant: local_tenant(),
        created_at: NOW,
        last_used_at: None,
        sha256: digest(key.text.expose_secret()),
    }
}

fn documents(folder: &Path) -> ApiKeyDocuments {
    ApiKeyDocuments::new(Store::open(folder, Options::default()).unwrap())
}

#[test]
fn a_key_is_a_prefix_an_id_and_43_digits() {
    let key = NewApiKey::generate().unwrap();
    let text = key.text.expose_secret();
    assert_eq!(text.len(), 3 + 11 + 1 + 43);
    assert_eq!(key_id(text), Some(key.key_id.as_str()));
    assert!(is_chosen_key(text));
    assert_ne!(text, NewApiKey::generate().unwrap().text.expose_secret());
}

#[test]
fn base62_is_a_number_of_fixed_width() {
    for (mut bytes, digits, text) in [
        (vec![0; 32], SECRET_DIGITS, "0".repeat(43)),
        (vec![0, 61], 3, "00z".to_owned()),
        (vec![0, 62], 3, "010".to_owned()),
        (vec![1, 0], 3, "048".to_owned()),
        (vec![255; 8], ID_DIGITS, "LygHa16AHYF".to_owned()),
    ] {
        assert_eq!(base62(&mut bytes, digits), text);
    }
    // The largest secret fits: its first digit is not cut off.
    assert!(base62(&mut [255; 32], SECRET_DIGITS + 1).starts_with('0'));
}

#[test]
fn a_known_key_is_its_tenant_and_any_other_text_is_nobody() {
    let (key, other) = (NewApiKey::generate().unwrap(), NewApiKey::generate().unwrap());
    let keys = ApiKeys::new(vec![record(&key)], None).unwrap();
    let text = key.text.expose_secret();
    let holder = ApiKeyHolder { tenant: local_tenant(), key_id: key.key_id.clone() };
    assert_eq!(keys.verify(text, NOW), Some(holder));

    let foreign_secret =
        format!("tk_{}_{}", key.key_id, other.text.expose_secret().rsplit('_').next().unwrap());
    for wrong in [
        "",
        "tk_",
        "tk__",
        text.split_at(text.len() - 1).0,
        &format!("{text}0"),
        &text.to_uppercase(),
        text.strip_prefix("tk_").unwrap(),
        other.text.expose_secret(),
        &foreign_secret,
        &format!("tk_{}_", key.key_id),
        &key.key_id,
        &"a".repeat(100_000),
    ] {
        assert_eq!(keys.verify(wrong, NOW), None, "{wrong:.80}");
    }
}

#[test]
fn the_key_of_the_environment_is_good_in_addition() {
    let key = NewApiKey::generate().unwrap();
    let chosen = SecretString::from("a-key-of-24-characters!!");
    let keys = ApiKeys::new(vec![record(&key)], Some(&chosen)).unwrap();
    let holder = keys.verify("a-key-of-24-characters!!", NOW).unwrap();
    assert_eq!(holder.key_id, ENVIRONMENT_KEY_ID);
    assert_eq!(holder.tenant, local_tenant());
    assert!(keys.verify(key.text.expose_secret(), NOW).is_some());
    assert!(keys.verify("a-key-of-24-characters!?", NOW).is_none());
    let without = ApiKeys::new(Vec::new(), None).unwrap();
    assert!(without.verify("a-key-of-24-characters!!", NOW).is_none());
}

#[test]
fn a_chosen_key_is_24_or_more_visible_characters() {
    let with = |text: &str| ApiKeys::new(Vec::new(), Some(&text.into())).map(drop);
    assert_eq!(with(&"a".repeat(24)), Ok(()));
    let (short, long) = ("a".repeat(23), "a".repeat(KEY_BYTES_MAX + 1));
    let spaced = format!("{short} a");
    for text in
        ["", &short, &spaced, &long, "twenty-four-characters-\u{e9}", "\t                        "]
    {
        assert_eq!(with(text), Err(ChosenKeyError));
    }
}

#[tokio::test]
async fn a_created_key_is_good_at_once_and_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let store = documents(folder.path());
    let keys = ApiKeys::new(store.load().unwrap(), None).unwrap();
    let key = keys.create(&store, "backend", NOW).await.unwrap();
    let text = key.text.expose_secret();
    assert!(keys.verify(text, NOW).is_some());
    drop(store);

    let store = documents(folder.path());
    let records = store.load().unwrap();
    assert_eq!(records.len(), 1);
    assert_eq!(
        (records[0].label.as_str(), records[0].created_at, records[0].last_used_at),
        ("backend", NOW, None)
    );
    let keys = ApiKeys::new(records, None).unwrap();
    assert!(keys.verify(text, NOW).is_some());
    let kept: Vec<u8> = std::fs::read_dir(folder.path())
        .unwrap()
        .filter_map(|entry| std::fs::read(entry.unwrap().path()).ok())
        .flatten()
        .collect();
    let secret = text.rsplit('_').next().unwrap().as_bytes();
    assert!(!kept.windows(secret.len()).any(|window| window == secret), "the key is on disk");
}

#[tokio::test]
async fn the_last_use_is_kept_to_the_minute() {
    let folder = tempfile::tempdir().unwrap();
    let store = documents(folder.path());
    let keys = ApiKeys::new(Vec::new(), None).unwrap();
    let key = keys.create(&store, "backend", NOW).await.unwrap();
    let last_used = |records: Vec<ApiKeyRecord>| records[0].last_used_at;
    assert_eq!(last_used(keys.list()), None);

    keys.verify(key.text.expose_secret(), NOW);
    let minute = Some(Timestamp::from_millis(NOW.millis() / 60_000 * 60_000));
    assert_eq!(last_used(keys.list()), minute);
    assert_eq!(last_used(store.load().unwrap()), None, "nothing is written on the way");
    keys.save_used(&store).await.unwrap();
    assert_eq!(last_used(store.load().unwrap()), minute);
    assert_eq!(keys.records(|known| known.current() != known.record), [], "nothing left to save");

    keys.verify(key.text.expose_secret(), NOW.plus(std::time::Duration::from_secs(1)));
    assert_eq!(keys.records(|known| known.current() != known.record), [], "the same minute");
    keys.verify(key.text.expose_secret(), NOW.plus(std::time::Duration::from_mins(1)));
    assert_eq!(keys.records(|known| known.current() != known.record).len(), 1);
}

#[tokio::test]
async fn keys_are_listed_oldest_first() {
    let folder = tempfile::tempdir().unwrap();
    let store = documents(folder.path());
    let keys = ApiKeys::new(Vec::new(), None).unwrap();
    for (label, secs) in [("b", 2), ("c", 3), ("a", 1)] {
        keys.create(&store, label, Timestamp::from_secs(secs)).await.unwrap();
    }
    let labels: Vec<_> = keys.list().into_iter().map(|record| record.label).collect();
    assert_eq!(labels, ["a", "b", "c"]);
}

#[test]
fn debug_shows_no_key() {
    let key = NewApiKey::generate().unwrap();
    let secret = key.text.expose_secret().rsplit('_').next().unwrap();
    let keys = ApiKeys::new(vec![record(&key)], Some(&key.text)).unwrap();
    assert!(!format!("{key:?} {:?} {keys:?}", record(&key)).contains(secret));
}
