use crate::kit::*;
use turnd_storage::{Options, Store};
#[test]
fn probe() {
    let dir = tempfile::tempdir().unwrap();
    let t = std::time::Instant::now();
    let s = Store::open(dir.path(), Options::default()).unwrap();
    println!("open {:?}", t.elapsed());
    let du = || {
        println!(
            "{}",
            String::from_utf8(
                std::process::Command::new("sh")
                    .arg("-c")
                    .arg(format!(
                        "cd {} && du -k --apparent-size journal.redb; du -k journal.redb",
                        dir.path().display()
                    ))
                    .output()
                    .unwrap()
                    .stdout
            )
            .unwrap()
        )
    };
    du();
    let rt = runtime();
    for n in 0..200 {
        rt.block_on(s.append(append(&key(n), 1, 20))).unwrap();
    }
    du();
    rt.block_on(s.settle_archive()).unwrap();
    for n in 200..300 {
        rt.block_on(s.append(append(&key(n), 1, 20))).unwrap();
    }
    du();
    s.close();
    du();
    let t = std::time::Instant::now();
    let s = Store::open(dir.path(), Options::default()).unwrap();
    println!("reopen {:?}", t.elapsed());
    du();
    for n in 300..400 {
        rt.block_on(s.append(append(&key(n), 1, 20))).unwrap();
    }
    du();
}
