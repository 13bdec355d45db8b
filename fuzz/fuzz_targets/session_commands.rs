#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| turnd_fuzz::session_commands(bytes));
