use super::*;

fn key() -> SessionKey {
    SessionKey { tenant: local_tenant(), session: SessionId::parse("s1").unwrap() }
}

#[test]
fn an_id_has_a_closed_alphabet_and_length() {
    for good in ["a", "A-Z.0_9:~@+=", &"x".repeat(128)] {
        assert_eq!(SessionId::parse(good).unwrap().as_str(), good);
    }
    for bad in ["", "a b", "a/b", "..%2f", "\u{e9}", "a\0", "a\n", &"x".repeat(129)] {
        assert_eq!(SessionId::parse(bad), Err(IdError::Id), "{bad:?}");
    }
}

#[test]
fn an_owner_id_is_any_printable_text() {
    assert!(OwnerId::parse("Zo\u{eb} <zoe@example.com>").is_ok());
    for bad in ["", "a\0", "a\r\nb", &"x".repeat(257)] {
        assert_eq!(OwnerId::parse(bad), Err(IdError::Owner), "{bad:?}");
    }
}

#[test]
fn a_key_survives_its_bytes() {
    assert_eq!(SessionKey::from_bytes(&key().to_bytes()), Some(key()));
    assert_eq!(SessionKey::from_bytes(b"no separator"), None);
}

#[test]
fn derived_ids_are_version_7_and_differ_by_session_seq_and_index() {
    let now = Timestamp::from_millis(1_790_000_000_000);
    let id = derive_message_id(&key(), Seq(4), 0, now);
    assert_eq!(id, derive_message_id(&key(), Seq(4), 0, now));
    assert_eq!(uuid::Uuid::parse_str(id.as_str()).unwrap().get_version_num(), 7);
    let other = SessionKey { session: SessionId::parse("s2").unwrap(), ..key() };
    assert_ne!(id, derive_message_id(&other, Seq(4), 0, now));
    assert_ne!(id, derive_message_id(&key(), Seq(5), 0, now));
    assert_ne!(id, derive_message_id(&key(), Seq(4), 1, now));
}
