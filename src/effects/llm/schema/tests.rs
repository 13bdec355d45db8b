use super::*;

#[test]
fn a_schema_is_sent_as_it_is_or_made_one_of_an_object() {
    let whole = r#"{"type": "object", "properties": {"b": {}, "a": {"const": 1.50}}}"#;
    for (schema, sent) in [
        (whole, whole),
        ("{}", NO_ARGUMENTS),
        (" { } ", r#"{"type":"object","properties":{} } "#),
        (r#"{"type":"object"}"#, r#"{"properties":{},"type":"object"}"#),
        (r#"{"properties":{"a":{}}}"#, r#"{"type":"object","properties":{"a":{}}}"#),
        (r#"{ "anyOf":[] }"#, r#"{"type":"object","properties":{}, "anyOf":[] }"#),
        (r#"{"type":"string"}"#, NO_ARGUMENTS),
        (r#"{"type":["object","null"]}"#, NO_ARGUMENTS),
        ("true", NO_ARGUMENTS),
        ("[]", NO_ARGUMENTS),
    ] {
        assert_eq!(parameters(Json::parse(schema).as_ref()).get(), sent.trim_end());
    }
    assert_eq!(parameters(None).get(), NO_ARGUMENTS);
}
