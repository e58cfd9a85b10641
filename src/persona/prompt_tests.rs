use std::time::Duration;

use super::*;
use crate::kernel::contracts::Emotion;

fn persona(folder: &Path, prompt: &str) -> Persona {
    let settings = settings::Persona { prompt: prompt.into(), ..Default::default() };
    Persona::new(settings, folder.to_owned())
}

#[test]
fn the_full_prompt_names_every_emotion_and_the_small_one_none() {
    let persona = persona(Path::new("nowhere"), "alice");
    let full = persona.system(true);
    for emotion in Emotion::ALL {
        assert!(full.contains(&format!("[{}]", emotion.name())), "{}", emotion.name());
    }
    let small = persona.system(false);
    assert!(!small.contains('['));
    // Four characters a token: at most 80 tokens.
    assert!(small.len() <= 320, "{}", small.len());
    for text in [&full, &small] {
        assert!(text.contains("Alice"));
        assert!(!text.contains(['{', '}']), "a name is left open");
    }
    assert_eq!(persona.problem(), None);
}

#[test]
fn names_are_put_in_and_lines_about_an_unknown_user_left_out() {
    let template = "I am {name}.\nYou are {user_name}.\nBye.";
    assert_eq!(fill(template, "Eve", "Bo"), "I am Eve.\nYou are Bo.\nBye.");
    assert_eq!(fill(template, "Eve", ""), "I am Eve.\nBye.");
}

#[test]
fn a_file_wins_and_is_read_again_when_it_changes() {
    let folder = tempfile::tempdir().unwrap();
    let persona = persona(folder.path(), "alice");
    let file = folder.path().join("alice.md");
    let write = |text: &str, age: u64| {
        fs::write(&file, text).unwrap();
        let when = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - age);
        fs::File::options().append(true).open(&file).unwrap().set_modified(when).unwrap();
    };
    let built_in = persona.system(true);
    write("One, {name}.", 10);
    assert_eq!(persona.system(true), "One, Alice.");
    write("Two, {name}.", 5);
    assert_eq!(persona.system(true), "Two, Alice.");
    fs::write(&file, [0xff, 0xfe]).unwrap();
    assert_eq!(persona.system(true), built_in, "not text");
    fs::remove_file(&file).unwrap();
    assert_eq!(persona.system(true), built_in);
}

#[test]
fn an_own_prompt_stands_for_both_unless_it_has_a_small_one() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("eve.md"), "full eve").unwrap();
    let own = persona(folder.path(), "eve");
    assert_eq!((own.system(true), own.system(false)), ("full eve".into(), "full eve".into()));
    fs::write(folder.path().join("eve-small.md"), "small eve").unwrap();
    assert_eq!((own.system(true), own.system(false)), ("full eve".into(), "small eve".into()));
    assert_eq!(own.problem(), None);
}

#[test]
fn a_prompt_that_is_nowhere_is_said_and_alice_stands_in() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("prompts")).unwrap();
    fs::write(folder.path().join("secret.md"), "outside").unwrap();
    let lost = persona(&folder.path().join("prompts"), "../secret");
    assert!(lost.problem().unwrap().text.contains("`../secret`"));
    assert!(lost.system(true).contains("Alice"));
    assert!(lost.system(false).contains("Alice"));
}
