//! Programs that run on a visitor's or a publisher's machine. WebAssembly is excluded.

/// Program and system script extensions.
pub(super) const EXTENSIONS: &[&str] = &[
    "exe", "dll", "so", "dylib", "msi", "bat", "cmd", "ps1", "vbs", "scr", "com", "sh", "app", "deb",
    "desktop",
];

const MAGIC: &[(&[u8], &str)] = &[
    (b"\x7fELF", "ELF"),
    (b"MZ", "PE"),
    (b"\xfe\xed\xfa\xce", "Mach-O"),
    (b"\xfe\xed\xfa\xcf", "Mach-O"),
    (b"\xce\xfa\xed\xfe", "Mach-O"),
    (b"\xcf\xfa\xed\xfe", "Mach-O"),
    (b"\xca\xfe\xba\xbe", "Mach-O or Java class"),
    (b"\xbe\xba\xfe\xca", "Mach-O"),
    (b"dex\n", "DEX"),
    (b"BC\xc0\xde", "LLVM bitcode"),
    (b"\xde\xc0\x17\x0b", "LLVM bitcode"),
    (b"\xd0\xcf\x11\xe0", "OLE"),
    (b"\x4c\x00\x00\x00\x01\x14\x02\x00", "shortcut"),
    (b"#!", "script"),
];

/// Detects a program by its first bytes.
pub(super) fn by_content(head: &[u8]) -> Option<&'static str> {
    MAGIC.iter().find(|(mark, _)| head.starts_with(mark)).map(|(_, kind)| *kind)
}
