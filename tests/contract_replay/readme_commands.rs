//! Runs the commands of the README's section "From revision A to B" as printed: they start a demo server of each revision and replay
//! requests to both.

use std::{
    fs,
    net::TcpListener,
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use super::{binaries, markdown_code_blocks::blocks, read};

/// A shell, whose process group is stopped when this value is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        _ = Command::new("kill").args(["--", &format!("-{}", self.0.id())]).status();
        _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port()
}

#[test]
#[ignore = "needs a binary of each revision: tests/all.sh runs it"]
fn the_replay_commands_of_the_readme_work_with_two_demo_servers() {
    let folder = tempfile::tempdir().expect("a folder");
    let [older, newer] = binaries();
    let (old_port, new_port) = (free_port().to_string(), free_port().to_string());
    let here = |block: &str| {
        let block = block.replace("cargo run --features rev-a --", &older).replace("cargo run --", &newer);
        block.replace("counterpart contract", &format!("{newer} contract")).replace("8081", &old_port).replace("8082", &new_port)
    };
    let shell = |block: &str| {
        let mut shell = Command::new("bash");
        shell.args(["-euo", "pipefail", "-c", &here(block)]).current_dir(folder.path()).process_group(0);
        shell
    };
    let blocks = blocks(&read("README.md"), "From revision A to B");
    let [first, second, replay] = &blocks[..] else { panic!("the section has three blocks") };
    let demos = [(first, "old.txt"), (second, "new.txt")].map(|(block, file)| {
        let running = Running(shell(block).stdout(Stdio::null()).spawn().expect("bash starts"));
        let deadline = Instant::now() + Duration::from_secs(60);
        while !fs::read_to_string(folder.path().join(file)).is_ok_and(|text| text.contains("curl ")) {
            assert!(Instant::now() < deadline, "{file}: the demo does not start");
            thread::sleep(Duration::from_millis(50));
        }
        running
    });
    let output = shell(replay).output().expect("bash starts");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    assert!(printed.contains(" requests to both servers, 0 with differences that are not documented"), "{printed}");
    drop(demos);
}
