//! `[llm.<id>]`: where model calls go and what they cost.

use std::collections::BTreeMap;

use rust_decimal::Decimal;

use super::problem::Fault;
use super::reader::{Kind, Section, decimal_digits, wrong_type};
use super::text::{http_url, name_text};
use super::{later, nearest};
use crate::control::agents::{DEMO, Llm, LlmKind, Price};
use crate::control::secrets::is_variable_name;
use crate::ids::LlmId;

const TYPES: [(&str, LlmKind); 3] =
    [(DEMO, LlmKind::Demo), ("openai", LlmKind::OpenAi), ("anthropic", LlmKind::Anthropic)];

/// Dearer than any model by far: a larger number is a slip.
const DOLLARS_MAX: u32 = 1_000_000;

/// Every block that is declared, and the built-in `demo`.
pub(super) fn read(section: Section<'_, '_>) -> BTreeMap<LlmId, Llm> {
    let mut llms = BTreeMap::new();
    for (name, block) in section.sections(Kind::Llm) {
        let id = LlmId::parse(name).map_err(|error| block.own_fault(Fault::Id(error)));
        if let (Some(llm), Ok(id)) = (read_block(name, block), id) {
            llms.insert(id, llm);
        }
    }
    llms.entry(LlmId::parse(DEMO).expect("`demo` is an id")).or_insert_with(Llm::demo);
    llms
}

fn read_block(name: &str, mut block: Section<'_, '_>) -> Option<Llm> {
    let kind = block.parsed("type", parse_type);
    if !block.has("type") {
        block.own_fault(Fault::Missing("`type`, one of \"demo\", \"openai\", \"anthropic\""));
    }
    let base_url = block.parsed("base_url", http_url);
    let api_key_env = block.parsed("api_key_env", variable_name);
    let prices = read_prices(block.section("price", Kind::Price));
    if kind == Some(LlmKind::Demo) {
        for key in ["base_url", "api_key_env", "price"] {
            if block.has(key) {
                block.fault(key, Fault::UselessWithDemo);
            }
        }
    } else if kind.is_some() && name == DEMO {
        block.fault("type", Fault::DemoBlock);
    }
    block.finish();
    let (usual_url, usual_variable) = vendor(kind?);
    let base_url = base_url.unwrap_or_else(|| usual_url.to_owned());
    // A vendor's key goes to the vendor only: another server gets one when the block names it.
    let at_vendor = base_url == usual_url;
    let usual_variable = usual_variable.filter(|_| at_vendor).map(str::to_owned);
    Some(Llm {
        kind: kind?,
        base_url,
        api_key: None,
        api_key_env: api_key_env.or(usual_variable),
        prices,
    })
}

fn parse_type(text: &str) -> Result<LlmKind, Fault> {
    if let Some((_, kind)) = TYPES.iter().find(|(name, _)| *name == text) {
        return Ok(*kind);
    }
    if let Some(capability) = later::capability(Kind::LlmType, text) {
        return Err(Fault::Later { name: text.to_owned(), capability });
    }
    let known = TYPES.map(|(name, _)| name);
    Err(Fault::UnknownName {
        what: "type",
        nearest: nearest::nearest(text, known),
        known: known.map(str::to_owned).to_vec(),
    })
}

fn variable_name(text: &str) -> Result<String, Fault> {
    if is_variable_name(text) { Ok(text.to_owned()) } else { Err(Fault::Variable) }
}

/// Where a vendor's API is, and the variable that its own tools read the key from.
fn vendor(kind: LlmKind) -> (&'static str, Option<&'static str>) {
    match kind {
        LlmKind::Demo => ("", None),
        LlmKind::OpenAi => ("https://api.openai.com/v1", Some("OPENAI_API_KEY")),
        LlmKind::Anthropic => ("https://api.anthropic.com", Some("ANTHROPIC_API_KEY")),
    }
}

fn read_prices(section: Section<'_, '_>) -> BTreeMap<String, Price> {
    let mut prices = BTreeMap::new();
    for (model, mut block) in section.sections(Kind::Price) {
        if let Err(fault) = name_text(model) {
            block.own_fault(fault);
        }
        let input = dollars(&mut block, "input");
        let output = dollars(&mut block, "output");
        let cached_input = dollars(&mut block, "cached_input");
        if !block.has("input") || !block.has("output") {
            block.own_fault(Fault::Missing("a price is `{ input = .., output = .. }`"));
        }
        block.finish();
        if let (Some(input), Some(output)) = (input, output) {
            prices.insert(model.to_owned(), Price { input, output, cached_input });
        }
    }
    prices
}

/// A price, exactly as it is written: money takes no way through a binary fraction.
fn dollars(block: &mut Section<'_, '_>, key: &'static str) -> Option<Decimal> {
    let value = block.value(key)?;
    let Some(digits) = decimal_digits(value) else {
        block.fault(key, wrong_type("a number", value));
        return None;
    };
    let fits = |price: &Decimal| !price.is_sign_negative() && *price <= Decimal::from(DOLLARS_MAX);
    let price = decimal(&digits).filter(fits);
    if price.is_none() {
        block.fault(key, Fault::Dollars { max: DOLLARS_MAX });
    }
    price
}

fn decimal(text: &str) -> Option<Decimal> {
    let text = text.strip_prefix('+').unwrap_or(text);
    if text.contains(['e', 'E']) {
        return Decimal::from_scientific(text).ok();
    }
    Decimal::from_str_exact(text).ok()
}
