//! File names.

use media::file_name;

#[test]
fn hostile_names_become_safe() {
    for (raw, name) in [
        ("plan.pdf", "plan.pdf"),
        ("../../etc/passwd", "passwd"),
        ("C:\\x\\y.txt", "y.txt"),
        ("\\\\host\\share/a.txt", "a.txt"),
        ("a/..\\", "file"),
        ("a/", "file"),
        ("", "file"),
        (".", "file"),
        ("..", "file"),
        (" . . . ", "file"),
        ("\u{200b}\u{feff}", "file"),
        (".gitignore", ".gitignore"),
        ("  a b.txt \t", "a b.txt"),
        ("a.txt. . .", "a.txt"),
        ("a.txt\0.exe", "a.txt.exe"),
        ("a\r\nSet-Cookie: b.txt", "aSet-Cookie: b.txt"),
        ("a\u{202e}gpj.exe", "agpj.exe"),
        ("\u{2066}a\u{2069}\u{200f}\u{61c}.txt", "a.txt"),
        ("a\u{2028}b\u{2029}c\u{85}d", "abcd"),
        ("a\u{ad}\u{2060}\u{e0041}\u{fff9}.txt", "a.txt"),
        (".\u{200d}./a", "a"),
        ("a\u{200d}.txt", "a.txt"),
        ("e\u{301}.txt", "\u{e9}.txt"),
        ("e\u{200b}\u{301}.txt", "\u{e9}.txt"),
        ("\u{212b}.txt", "\u{c5}.txt"),
        ("\u{c77}\u{200d}\u{37e}", "\u{c77};"),
        ("🎉 ❤\u{fe0f}.png", "🎉 ❤\u{fe0f}.png"),
        ("👨\u{200d}👩\u{200d}👧.png", "👨\u{200d}👩\u{200d}👧.png"),
        ("می\u{200c}خواهم.txt", "می\u{200c}خواهم.txt"),
        ("報告書.docx", "報告書.docx"),
    ] {
        assert_eq!(file_name(raw), name, "{raw:?}");
        assert_eq!(file_name(name), name, "{raw:?}");
    }
}

#[test]
fn a_long_name_keeps_its_extension() {
    let name = file_name(&format!("{}.tar.gz", "é".repeat(300)));
    assert_eq!(name, format!("{}.gz", "é".repeat(197)));
    assert_eq!(file_name(&"a".repeat(300)), "a".repeat(200));
    assert_eq!(file_name(&"a".repeat(200)), "a".repeat(200));
    assert_eq!(file_name(&format!("a.{}", "b".repeat(300))), format!("a.{}", "b".repeat(198)));
    assert_eq!(
        file_name(&format!("{} {}.txt", "a".repeat(195), "b".repeat(9))),
        format!("{}.txt", "a".repeat(195))
    );
    let families = file_name(&"👨\u{200d}".repeat(150));
    assert!(families.ends_with('👨') && families.chars().count() == 199);
    assert_eq!(file_name(&format!("a{}.txt", " ".repeat(300))), "a.txt");
}
