use super::*;

/// What the program says, and its argument: a process that no other test has.
const WORDS: &str = "what a program said";

/// A test that fails while a program of its runs. Run by the next one, in a process of its own.
#[test]
#[ignore = "it fails"]
fn fails() {
    let folder = folder::new("failing").expect("a folder");
    let command = ["sh", "-c", "echo \"$0\"; exec sleep 1000", WORDS].map(str::to_owned);
    write_command(&folder, "program", &command).expect("a command");
    let supervisor = Supervisor::start(&folder).expect("a supervisor");
    folder::keep_on_panic(&folder);
    let pid = supervisor.start_program("program").expect("a program");
    while !fs::read_to_string(folder.join("program.log")).is_ok_and(|said| said.contains(WORDS)) {
        supervisor.check("program").expect("it runs");
        std::thread::yield_now();
    }
    panic!("pid {pid}.");
}

/// When a test fails its programs end, and what they said stays, where the test says.
#[test]
fn logs_outlive_a_test_that_fails() {
    let this = std::env::current_exe().expect("this program");
    let ran = Command::new(this).args(["--ignored", "--exact", "tests::fails", "--nocapture"]).output();
    let ran = ran.expect("it runs");
    assert!(!ran.status.success());
    let said = String::from_utf8_lossy(&ran.stderr);
    let after = |mark: &str| said.split_once(mark).unwrap_or_else(|| panic!("no {mark:?} in {said}")).1;
    let folder = after("logs of the test's programs are kept in ").lines().next().expect("a folder");
    let log = fs::read_to_string(Path::new(folder).join("program.log")).expect("a log");
    assert_eq!(log, format!("{WORDS}\n"));
    let pid = after("pid ").split_once('.').expect("a pid").0;
    assert!(!Path::new(&format!("/proc/{pid}")).exists(), "it still runs");
    fs::remove_dir_all(folder).expect("removed");
}
