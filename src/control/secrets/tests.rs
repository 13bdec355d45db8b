use std::path::Path;

use secrecy::ExposeSecret;

use super::*;

/// An environment with `CREDENTIALS_DIRECTORY` and one variable.
fn read(folder: &Path, value: Option<&str>) -> Result<Option<String>, SecretError> {
    let environment = |name: &str| match name {
        "CREDENTIALS_DIRECTORY" => Some(folder.as_os_str().to_owned()),
        "SOME_KEY" => value.map(OsString::from),
        _ => None,
    };
    let secret = Secrets::new(&environment).read("SOME_KEY", 4)?;
    Ok(secret.map(|secret| secret.expose_secret().to_owned()))
}

#[test]
fn a_variable_wins_over_a_credential_and_loses_its_newline() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(read(folder.path(), None).unwrap(), None);
    std::fs::write(folder.path().join("SOME_KEY"), "from-file\r\n").unwrap();
    assert_eq!(read(folder.path(), None).unwrap().as_deref(), Some("from-file"));
    assert_eq!(read(folder.path(), Some("")).unwrap().as_deref(), Some("from-file"));
    assert_eq!(read(folder.path(), Some("from-env\n")).unwrap().as_deref(), Some("from-env"));
}

#[test]
fn an_empty_credential_is_unset() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("SOME_KEY"), "\n").unwrap();
    assert_eq!(read(folder.path(), None).unwrap(), None);
}

#[test]
fn a_secret_that_no_header_could_hold_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for value in ["abc", "with space", "line\nbreak", "caf\u{e9}caf\u{e9}"] {
        let error = read(folder.path(), Some(value)).unwrap_err();
        let words = "must be 4 or more printable ASCII characters without spaces";
        assert_eq!(error.to_string(), words);
    }
    std::fs::write(folder.path().join("SOME_KEY"), [0xff; 8]).unwrap();
    assert!(matches!(read(folder.path(), None), Err(SecretError::Form { .. })));
}

#[test]
fn a_credential_that_cannot_be_read_is_not_taken_for_absent() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("SOME_KEY")).unwrap();
    assert!(matches!(read(folder.path(), None), Err(SecretError::Unreadable(_))));
    std::fs::remove_dir(folder.path().join("SOME_KEY")).unwrap();
    std::fs::write(folder.path().join("SOME_KEY"), "x".repeat(20_000)).unwrap();
    assert!(matches!(read(folder.path(), None), Err(SecretError::TooLong)));
}

#[test]
fn names_of_variables_are_upper_case() {
    for name in ["OPENAI_API_KEY", "_A", "K2"] {
        assert!(is_variable_name(name), "{name}");
    }
    for name in ["", "2K", "key", "A-B", "A.B", "../A", "A B", &"A".repeat(65)] {
        assert!(!is_variable_name(name), "{name}");
    }
}

#[test]
fn plain_credentials_are_known_by_their_form() {
    for text in ["sk-proj-0123456789abcdef", "tk_0123456789abcdef", "-----BEGIN PRIVATE KEY-----"] {
        assert!(looks_like_secret(text), "{text}");
    }
    for text in ["sk-short", "sk- is how keys of some vendors begin", "gpt-4.1-mini-2025-04-14"] {
        assert!(!looks_like_secret(text), "{text}");
    }
}
