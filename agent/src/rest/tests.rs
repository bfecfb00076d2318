use super::*;

#[test]
fn only_code_of_the_program_is_given_back() {
    let line = |rights: &str, path: &str| {
        format!("7f577d9db000-7f577e4e9000 {rights} 003da000 fe:00 10330881                   {path}")
    };
    let program = "/usr/local/bin/berth";
    assert_eq!(text_of(&line("r-xp", program), program), Some(0x7f57_7d9d_b000..0x7f57_7e4e_9000));
    // Filled in by the loader, or written to; another file; one that was replaced; shared.
    for (rights, path) in [
        ("r--p", program),
        ("rw-p", program),
        ("r-xp", "/usr/lib/libc.so.6"),
        ("r-xp", "/usr/local/bin/berth (deleted)"),
        ("r-xs", program),
    ] {
        assert_eq!(text_of(&line(rights, path), program), None, "{rights} {path}");
    }
    assert_eq!(
        text_of("7ffd1d9e2000-7ffd1d9e4000 r-xp 00000000 00:00 0                          [vdso]", program),
        None
    );
    assert_eq!(text_of("", program), None);
}

/// How much of this program's code is mapped, in kB.
fn mapped() -> usize {
    let program = std::fs::read_link("/proc/self/exe").unwrap();
    let text = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let mut is_code = false;
    let mut sum = 0;
    for line in text.lines() {
        if let Some(size) = line.strip_prefix("Rss:").filter(|_| is_code) {
            sum += size.trim().trim_end_matches(" kB").parse::<usize>().unwrap();
        } else if line.split_once(' ').is_some_and(|(place, _)| place.contains('-')) {
            is_code = text_of(line, &program.to_string_lossy()).is_some();
        }
    }
    sum
}

/// Code goes on after it was given back, and less of it is mapped. Tests beside this one map code meanwhile, so that one look
/// may see more than it saw before: one of a hundred must not.
#[test]
fn what_is_given_back_comes_again() {
    let count = |text: &str| text.bytes().filter(u8::is_ascii_lowercase).count();
    assert_eq!(count("Berth"), 4);
    let looks: Vec<(usize, usize)> = (0..100)
        .map(|_| {
            let before = mapped();
            give_back();
            (before, mapped())
        })
        .collect();
    assert!(looks.iter().any(|(before, after)| after < before), "kB before and after: {looks:?}");
    assert_eq!(count("Berth"), 4);
}

#[tokio::test]
async fn it_waits_as_long_as_it_is_told_and_no_longer() {
    let ms = Duration::from_millis;
    for wait in [ms(0), ms(2), ms(5), ms(9)] {
        let begun = std::time::Instant::now();
        rest_after(ms(5), wait, std::future::pending()).await;
        assert!(begun.elapsed() >= wait, "{wait:?}");
    }
    // An hour, if nothing happened.
    rest_after(ms(2), Duration::from_secs(3600), tokio::time::sleep(ms(6))).await;
}
