use std::collections::BTreeMap;

use secrecy::ExposeSecret;

use super::*;

const FILE: &str = "conf/turnd.toml";

fn resolve(
    flags: &Flags,
    variables: &[(&str, &str)],
    manifest: Option<&str>,
) -> Result<Config, ConfigError> {
    let variables: BTreeMap<_, _> = variables.iter().copied().collect();
    let environment = |name: &str| variables.get(name).map(OsString::from);
    Config::resolve(flags, &environment, manifest.map(|text| (Path::new(FILE), text)))
}

#[track_caller]
fn refused(variables: &[(&str, &str)], manifest: &str, expected: &[&str]) {
    let error = resolve(&Flags::default(), variables, Some(manifest)).unwrap_err();
    let ConfigError::Invalid(findings) = error else { panic!("{error}") };
    let words: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert_eq!(words, expected);
}

#[test]
fn without_anything_the_demo_agent_listens_on_loopback() {
    let config = resolve(&Flags::default(), &[], None).unwrap();
    assert_eq!(config.listen.to_string(), "127.0.0.1:7171");
    assert_eq!(config.data, Path::new("turnd-data"));
    assert_eq!(config.cors_origins, ["*"]);
    assert_eq!(config.limits, Limits::default());
    assert!(config.catalogue.agents.contains_key("demo"));
    assert!(config.catalogue.llms.contains_key("demo"));
    assert!(config.missing.is_empty() && config.warnings.is_empty());
    assert!(config.api_key.is_none() && config.manifest.is_none());
}

#[test]
fn a_flag_wins_over_the_environment_and_that_over_the_manifest() {
    let manifest = "data = \"d\"\n[serve]\nlisten = \"127.0.0.1:1\"\npublic_url = \"http://a\"";
    let variables = [
        ("TURND_LISTEN", "127.0.0.1:2"),
        ("TURND_DATA", "e"),
        ("TURND_PUBLIC_URL", "http://b/"),
        ("STATE_DIRECTORY", "/var/lib/turnd:/other"),
    ];
    let flags =
        Flags { listen: "127.0.0.1:3".parse().ok(), data: Some("f".into()), ..Flags::default() };
    let place = |config: Config| (config.listen.port(), config.data, config.public_url.unwrap());

    let config = resolve(&Flags::default(), &variables[3..], Some(manifest)).unwrap();
    assert_eq!(place(config), (1, "conf/d".into(), "http://a".to_owned()));
    let config = resolve(&Flags::default(), &variables, Some(manifest)).unwrap();
    assert_eq!(place(config), (2, "e".into(), "http://b".to_owned()));
    let config = resolve(&flags, &variables, Some(manifest)).unwrap();
    assert_eq!(place(config), (3, "f".into(), "http://b".to_owned()));

    let config = resolve(&Flags::default(), &variables[3..], Some("")).unwrap();
    assert_eq!(config.data, Path::new("/var/lib/turnd"));
    let config = resolve(&Flags::default(), &[], Some("data = \"/abs\"")).unwrap();
    assert_eq!(config.data, Path::new("/abs"));
    let config = resolve(&Flags::default(), &[("TURND_DATA", "")], Some(manifest)).unwrap();
    assert_eq!(config.data, Path::new("conf/d"), "an empty variable is unset");
}

#[test]
fn keys_are_read_by_name_and_never_shown() {
    let manifest = "[llm.openai]\ntype = \"openai\"\n[llm.claude]\ntype = \"anthropic\"\n\
                    [llm.local]\ntype = \"openai\"\nbase_url = \"http://127.0.0.1:8080\"";
    let key = "a-very-long-api-key-of-ours";
    let token_key = "another-key-of-32-characters-000";
    let variables = [
        ("OPENAI_API_KEY", "vendor-key"),
        ("TURND_API_KEY", key),
        ("TURND_CLIENT_TOKEN_KEY", token_key),
        ("TURND_CLIENT_TOKEN_KEY_PREVIOUS", token_key),
    ];
    let config = resolve(&Flags::default(), &variables, Some(manifest)).unwrap();
    let exposed = |secret: &Option<SecretString>| {
        secret.as_ref().map(|secret| secret.expose_secret().to_owned())
    };
    assert_eq!(exposed(&config.catalogue.llms["openai"].api_key).as_deref(), Some("vendor-key"));
    assert_eq!(exposed(&config.catalogue.llms["local"].api_key), None);
    assert_eq!(exposed(&config.api_key).as_deref(), Some(key));
    assert_eq!(exposed(&config.client_token_key).as_deref(), Some(token_key));
    assert_eq!(exposed(&config.client_token_key_previous).as_deref(), Some(token_key));

    let missing: Vec<String> = config.missing.iter().map(ToString::to_string).collect();
    assert_eq!(missing, ["ANTHROPIC_API_KEY is not set: models of `claude` cannot be called"]);

    let shown = format!("{config:?}");
    for secret in ["vendor-key", key, token_key] {
        assert!(!shown.contains(secret));
    }
}

#[test]
fn wrong_variables_are_named_without_their_values() {
    refused(
        &[
            ("TURND_LISTEN", "everywhere"),
            ("TURND_PUBLIC_URL", "http://me:word@host"),
            ("TURND_API_KEY", "too-short"),
            ("TURND_CLIENT_TOKEN_KEY", "31-characters-are-not-enough-00"),
        ],
        "",
        &[
            "TURND_LISTEN: must be an address and a port, such as 127.0.0.1:7171",
            "TURND_PUBLIC_URL: must not hold a user name or password",
            "TURND_API_KEY: must be 24 or more printable ASCII characters without spaces",
            "TURND_CLIENT_TOKEN_KEY: must be 32 or more printable ASCII characters without spaces",
        ],
    );
    refused(
        &[("OPENAI_API_KEY", "two words")],
        "[llm.a]\ntype = \"openai\"\n[llm.b]\ntype = \"openai\"",
        &["OPENAI_API_KEY: must be 1 or more printable ASCII characters without spaces"],
    );
}

#[test]
fn problems_of_file_and_environment_come_together() {
    refused(
        &[("TURND_LISTEN", "x")],
        "[agent.support]\nllm = \"demo\"\nmodel = \"demo\"\n\n\n\nmodle = \"m\"",
        &[
            "conf/turnd.toml:7: agent.support.modle: unknown key; did you mean `model`?",
            "TURND_LISTEN: must be an address and a port, such as 127.0.0.1:7171",
        ],
    );
}

#[test]
fn a_key_that_goes_over_plain_http_to_another_machine_is_warned_of() {
    let warnings = |url: &str| {
        let text = format!("[llm.a]\ntype = \"openai\"\napi_key_env = \"K\"\nbase_url = \"{url}\"");
        resolve(&Flags::default(), &[], Some(&text)).unwrap().warnings.len()
    };
    assert_eq!(warnings("http://10.0.0.1/v1"), 1);
    assert_eq!(warnings("HTTP://models.example"), 1);
    for url in
        ["https://models.example", "http://localhost:1", "http://127.0.0.2", "http://[::1]:1"]
    {
        assert_eq!(warnings(url), 0, "{url}");
    }
}

#[test]
fn a_manifest_that_is_named_must_be_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("my.toml");
    let flags = Flags { config: Some(path.clone()), ..Flags::default() };
    let variable = |name: &str| (name == "TURND_CONFIG").then(|| path.clone().into_os_string());

    let error = Config::load(&flags, &|_| None).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot read the manifest {}", path.display()));
    assert!(matches!(Config::load(&Flags::default(), &variable), Err(ConfigError::Read { .. })));

    std::fs::write(&path, "name = \"shop\"\ndata = \"d\"").unwrap();
    for config in [Config::load(&flags, &|_| None), Config::load(&Flags::default(), &variable)] {
        let config = config.unwrap();
        assert_eq!(config.name.as_deref(), Some("shop"));
        assert_eq!(config.data, folder.path().join("d"));
        assert_eq!(config.manifest.as_deref(), Some(path.as_path()));
    }

    std::fs::write(&path, [0xff, 0xfe]).unwrap();
    assert!(matches!(Config::load(&flags, &|_| None), Err(ConfigError::NotText(_))));
    std::fs::write(&path, "#".repeat(1024 * 1024 + 1)).unwrap();
    assert!(matches!(Config::load(&flags, &|_| None), Err(ConfigError::TooLarge(_))));
}
