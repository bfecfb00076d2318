//! `goldens!`: a case is a folder and a test of its own, in whichever crate has the folders.
//!
//! A crate's test brings this file in with `#[path]` (a dependency would tie the crates to each other) and has
//! `root()`, where the folders are, and `check(case)`, which runs one.

macro_rules! goldens {
    ($($case:ident),* $(,)?) => {
        $(#[test] fn $case() { check(stringify!($case)); })*

        #[test]
        fn no_folder_is_forgotten() {
            let mut listed = vec![$(stringify!($case)),*];
            listed.sort_unstable();
            let mut folders: Vec<String> = fs::read_dir(root()).unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            folders.sort_unstable();
            assert_eq!(listed, folders);
        }
    };
}
