//! Bundles shaped like the output of five build tools. The texts are our own: the names, the script positions and the
//! attributes matter.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bundle::{Accepted, Code};

use crate::build::{Zip, accepted, refused};

type Files<'a> = Vec<(&'a str, &'a str)>;

fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    files.iter().fold(Zip::default(), |zip, (path, content)| zip.file(path, content)).bytes()
}

/// Checks that the files are accepted and that pages have these inline scripts.
fn is_accepted(files: &[(&str, &str)], scripts: &[(&str, &[&str])]) -> Accepted {
    let bundle = accepted(&archive(files));
    assert_eq!(bundle.files.len(), files.len());
    for (path, scripts) in scripts {
        let file = bundle.files.iter().find(|file| file.path == *path).unwrap();
        let hash =
            |script: &&str| STANDARD.encode(ring::digest::digest(&ring::digest::SHA256, script.as_bytes()));
        let mut expected: Vec<String> = scripts.iter().map(hash).collect();
        expected.sort_unstable();
        expected.dedup();
        assert_eq!(file.script_hashes, expected, "{path}");
    }
    assert!(bundle.notes.is_empty(), "{:?}", bundle.notes);
    bundle
}

/// The only finding after adding a file.
fn with<'a>(mut files: Files<'a>, path: &'a str, content: &'a str) -> (Code, String) {
    files.push((path, content));
    let mut findings = refused(&archive(&files));
    assert_eq!(findings.len(), 1, "{findings:?}");
    let finding = findings.remove(0);
    assert_eq!(finding.path.as_deref(), Some(path));
    assert_in_guide(&finding.detail);
    (finding.code, finding.detail)
}

/// Checks that the guide names each setting in a detail.
fn assert_in_guide(detail: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/APPS.md");
    let guide = std::fs::read_to_string(path).unwrap();
    let (_, section) = guide.split_once("### Build tools").unwrap();
    let settings = detail.split('`').skip(1).step_by(2);
    for setting in settings.filter(|quoted| quoted.contains(['.', ':']) && !quoted.contains('/')) {
        assert!(section.contains(setting), "{setting} is not in the guide");
    }
}

const VITE: &str = r#"<!doctype html>
<html lang="en">
  <head>
    <meta charset="UTF-8" />
    <link rel="icon" type="image/svg+xml" href="/icon.svg" />
    <meta name="viewport" content="width=device-width, initial-scale=1.0" />
    <script type="module" crossorigin src="/assets/index-B0c_d-3A.js"></script>
    <link rel="modulepreload" crossorigin href="/assets/vendor-Xy12_z-9.js">
    <link rel="stylesheet" crossorigin href="/assets/index-D1a2B3c4.css">
  </head>
  <body><div id="root"></div></body>
</html>"#;

fn vite() -> Files<'static> {
    vec![
        ("index.html", VITE),
        ("icon.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"><path d=\"M0 0h9\"/></svg>"),
        (
            "assets/index-B0c_d-3A.js",
            "import\"./vendor-Xy12_z-9.js\";\n//# sourceMappingURL=index-B0c_d-3A.js.map",
        ),
        (
            "assets/index-B0c_d-3A.js.map",
            "{\"version\":3,\"sources\":[\"../../src/main.ts\"],\"mappings\":\"\"}",
        ),
        ("assets/vendor-Xy12_z-9.js", "export{}"),
        ("assets/index-D1a2B3c4.css", "@font-face{src:url(data:font/woff2;base64,AA)}"),
        ("manifest.json", "{\"index.html\":{\"file\":\"assets/index-B0c_d-3A.js\",\"isEntry\":true}}"),
        ("robots.txt", "User-agent: *"),
    ]
}

#[test]
fn an_output_of_vite_is_accepted() {
    is_accepted(&vite(), &[("index.html", &[])]);
}

#[test]
fn scripts_of_vites_legacy_plugin_are_hashed() {
    let probe = "window.modern=!0";
    let page = format!(
        "<!doctype html><head><script type=\"module\">{probe}</script></head><body>\
         <script nomodule>!function(){{}}();</script>\
         <script nomodule crossorigin id=\"legacy\" src=\"/assets/poly-legacy.js\"></script>\
         <script nomodule crossorigin id=\"entry\" data-src=\"/assets/index-legacy.js\">load()</script></body>"
    );
    let files =
        [("index.html", page.as_str()), ("assets/index-legacy.js", "x"), ("assets/poly-legacy.js", "x")];
    is_accepted(&files, &[("index.html", &[probe, "!function(){}();", "load()"])]);
}

#[test]
fn a_manifest_of_vite_in_a_hidden_folder_names_its_setting() {
    let (code, detail) = with(vite(), ".vite/manifest.json", "{}");
    assert_eq!(code, Code::SensitiveFile);
    assert!(detail.contains("Vite: set `build.manifest`"), "{detail}");
    let (code, _) = with(vite(), ".vite/ssr-manifest.json", "{}");
    assert_eq!(code, Code::SensitiveFile);
}

const NEXT_BOOT: &str = "(self.__f=self.__f||[]).push([0])";
const NEXT_DATA: &str =
    "self.__f.push([1,\"1:\\\"$Sreact.fragment\\\"\\n:HL[\\\"/_next/static/a.css\\\",\\\"style\\\"]\\n\"])";

fn next_page() -> String {
    format!(
        "<!DOCTYPE html><html lang=\"en\"><head><meta charSet=\"utf-8\"/><link rel=\"preload\" as=\"script\" \
         fetchPriority=\"low\" href=\"/_next/static/chunks/a-1.js\"/><link rel=\"stylesheet\" \
         href=\"/_next/static/css/a.css\" data-precedence=\"next\"/><script src=\"/_next/static/chunks/a-1.js\" \
         async=\"\"></script><script src=\"/_next/static/chunks/p.js\" noModule=\"\"></script><title>App</title></head>\
         <body><div hidden=\"\"><!--$--><!--/$--></div><main>one<!-- -->two<img alt=\"\" style=\"color:transparent\" \
         src=\"/a.png\"/></main><!--$--><!--/$--><template id=\"P:1\"></template><script id=\"_R_\">{NEXT_BOOT}</script>\
         <script>{NEXT_DATA}</script></body></html>"
    )
}

#[test]
fn a_static_export_of_next_is_accepted() {
    let page = next_page();
    let pages = "<!DOCTYPE html><div id=\"__next\"></div><noscript data-n-css=\"\"></noscript>\
        <script id=\"__NEXT_DATA__\" type=\"application/json\">{\"props\":{}}</script>";
    let files = [
        ("index.html", page.as_str()),
        ("index.txt", "1:\"$Sreact.fragment\"\n"),
        ("__next._tree.txt", "0:{}\n"),
        ("__next._full.txt", "0:{}\n"),
        ("__next.__PAGE__.txt", "0:{}\n"),
        ("__next.!KGdyb3VwKQ.txt", "0:{}\n"),
        ("404.html", page.as_str()),
        ("404/index.html", page.as_str()),
        ("_not-found/index.html", page.as_str()),
        ("_not-found/__next._not-found.__PAGE__.txt", "0:{}\n"),
        ("about/index.html", page.as_str()),
        ("posts/[id]/index.html", pages),
        ("_next/static/chunks/a-1.js", "x"),
        ("_next/static/chunks/p.js", "x"),
        ("_next/static/chunks/pages/posts/[id]-0a1b.js", "x"),
        ("_next/static/chunks/app/(group)/@slot/page-1a.js", "x"),
        ("_next/static/AbC-_1/_buildManifest.js", "self.__BUILD_MANIFEST={}"),
        ("_next/static/AbC-_1/_ssgManifest.js", "x"),
        ("_next/static/css/a.css", "p{}"),
    ];
    let scripts: &[&str] = &[NEXT_BOOT, NEXT_DATA];
    is_accepted(&files, &[("index.html", scripts), ("404.html", scripts), ("posts/[id]/index.html", &[])]);
}

const ASTRO_ISLAND: &str = "(()=>{customElements.define(\"astro-island\",class extends HTMLElement{})})();";
const ASTRO_INLINE: &str = "(function(){const name = \"x\";\nwindow.shown=name})();";

#[test]
fn an_output_of_astro_is_accepted() {
    let page = format!(
        "<!DOCTYPE html><html lang=\"en\" data-astro-cid-a1><head><meta charset=\"utf-8\"><meta \
         name=\"astro-view-transitions-enabled\" content=\"true\"><link rel=\"stylesheet\" href=\"/_astro/about.C1_d2.css\">\
         <style>h1[data-astro-cid-a1]{{color:red}}\n</style><script type=\"module\" src=\"/_astro/page.B-1.js\"></script>\
         </head><body data-astro-cid-a1><style>astro-island,astro-slot{{display:contents}}</style>\
         <script>{ASTRO_ISLAND}</script><astro-island uid=\"1\" component-url=\"/_astro/C.js\" component-export=\"default\" \
         renderer-url=\"/_astro/client.js\" props=\"{{&quot;a&quot;:[0,true]}}\" ssr client=\"load\" \
         opts=\"{{&quot;name&quot;:&quot;C&quot;}}\" await-children><button>0</button><!--astro:end--></astro-island>\
         <script type=\"module\">console.log(\"small\")</script><script>{ASTRO_INLINE}</script></body></html>"
    );
    let files = [
        ("index.html", page.as_str()),
        ("404.html", page.as_str()),
        ("about/index.html", page.as_str()),
        ("rss.xml", "<?xml version=\"1.0\" encoding=\"UTF-8\"?><rss version=\"2.0\"><channel/></rss>"),
        ("sitemap-index.xml", "<?xml version=\"1.0\" encoding=\"UTF-8\"?><sitemapindex/>"),
        ("_astro/about.C1_d2.css", "p{}"),
        ("_astro/page.B-1.js", "x"),
        ("_astro/C.js", "x"),
        ("_astro/client.js", "x"),
        ("_astro/about.astro_astro_type_script_index_0_lang._x.js", "x"),
    ];
    let scripts: &[&str] = &[ASTRO_ISLAND, "console.log(\"small\")", ASTRO_INLINE];
    is_accepted(&files, &[("index.html", scripts), ("about/index.html", scripts)]);
}

const KIT_BOOT: &str = "\n\t\t\t\t{\n\t\t\t\t\t__kit = {\n\t\t\t\t\t\tbase: \"\"\n\t\t\t\t\t};\n\t\t\t\t\timport(\"./_app/immutable/entry/start.B1.js\");\n\t\t\t\t}\n\t\t\t";

fn kit_page() -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n\t<head>\n\t\t<meta charset=\"utf-8\" />\n\t\t\
         <meta http-equiv=\"content-security-policy\" content=\"script-src 'self'\">\n\t\t\
         <link href=\"./_app/immutable/entry/start.B1.js\" rel=\"modulepreload\">\n\t\t\
         <!--1a2b--><link rel=\"icon\" href=\"data:image/svg+xml,%3csvg%20xmlns='http://www.w3.org/2000/svg'/%3e\"/><!---->\n\t\
         </head>\n\t<body data-sveltekit-preload-data=\"hover\">\n\t\t<div style=\"display: contents\"><!--[--><!--[0-->\
         <h1>Hi</h1><!--]--><!--[-1--><!--]-->\n\t\t\t<script type=\"application/json\" data-sveltekit-fetched \
         data-url=\"/a.json\">{{\"status\":200}}</script>\n\t\t\t<script>{KIT_BOOT}</script>\n\t\t</div>\n\t</body>\n</html>"
    )
}

#[test]
fn a_static_output_of_sveltekit_is_accepted() {
    let page = kit_page();
    let files = [
        ("index.html", page.as_str()),
        ("about/index.html", page.as_str()),
        ("404.html", page.as_str()),
        ("index.html.br", "compressed with Brotli, which has no mark"),
        ("about/__data.json", "{\"type\":\"data\",\"nodes\":[null]}"),
        ("_app/version.json", "{\"version\":\"1\"}"),
        ("_app/env.js", "export const env={}"),
        ("_app/immutable/entry/start.B1.js", "x"),
        ("_app/immutable/nodes/0.Dt-s_b.js", "x"),
        ("_app/immutable/chunks/Bjy-W4.js", "x"),
        ("robots.txt", "User-agent: *"),
    ];
    is_accepted(&files, &[("index.html", &[KIT_BOOT]), ("404.html", &[KIT_BOOT])]);
}

#[test]
fn files_added_by_sveltekit_for_other_hosts_name_the_setting() {
    let page = kit_page();
    let app = || vec![("index.html", page.as_str())];
    let (code, detail) = with(app(), ".nojekyll", "");
    assert_eq!(code, Code::SensitiveFile);
    assert!(detail.contains("is for GitHub Pages: remove it from the folder of static files"), "{detail}");
    for path in ["index.html.gz", "_app/immutable/nodes/0.js.gz"] {
        let (code, detail) = with(app(), path, "\u{1f}");
        assert_eq!(code, Code::NestedArchive);
        assert!(detail.contains("SvelteKit: set `precompress: false`"), "{detail}");
    }
    for path in ["_headers", "_redirects"] {
        let (code, detail) = with(app(), path, "/* /index.html 200");
        assert_eq!(code, Code::ReservedPath);
        assert!(
            detail.contains("would have no effect: remove it from the folder of static files"),
            "{detail}"
        );
    }
}

const ANGULAR_BOOT: &str =
    "document.querySelectorAll('link[data-media]').forEach(function(l){l.media='all'})";

fn angular(link: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\" data-container>\n<head>\n  <meta charset=\"utf-8\">\n  <base href=\"/\">\n  \
         <link rel=\"icon\" type=\"image/x-icon\" href=\"favicon.ico\">\n<style>body{{color:#123}}</style>{link}<noscript>\
         <link rel=\"stylesheet\" href=\"styles-VP.css\"></noscript><link rel=\"modulepreload\" href=\"chunk-A1.js\"></head>\n\
         <body>\n  <app-root ng-version=\"1\" ngh=\"0\" jsaction=\"click:;\"></app-root>\n\
         <script type=\"application/json\" id=\"ng-state\">{{}}</script><script src=\"main-2U.js\" type=\"module\"></script>\
         <script>{ANGULAR_BOOT}</script></body>\n</html>\n"
    )
}

#[test]
fn an_output_of_angular_is_accepted() {
    let page = angular("<link rel=\"stylesheet\" href=\"styles-VP.css\" media=\"print\" data-media=\"all\">");
    let files = [
        ("index.html", page.as_str()),
        ("favicon.ico", "x"),
        ("main-2U.js", "x"),
        ("chunk-A1.js", "x"),
        ("styles-VP.css", "p{}"),
        ("ngsw.json", "{}"),
        ("media/font-Q1.woff2", "wOF2"),
    ];
    is_accepted(&files, &[("index.html", &[ANGULAR_BOOT])]);
}

#[test]
fn the_event_handler_of_older_angular_names_its_setting() {
    let page = angular(
        "<link rel=\"stylesheet\" href=\"styles-VP.css\" media=\"print\" onload=\"this.media='all'\">",
    );
    let (code, detail) = with(Vec::new(), "index.html", &page);
    assert_eq!(code, Code::InlineEventHandler);
    assert!(detail.contains("Angular: set `optimization.styles.inlineCritical` to `false`"), "{detail}");
}

#[test]
fn the_folder_of_the_index_is_named() {
    let page = angular("");
    let detail = |files: &[(&str, &str)]| {
        let findings = refused(&archive(files));
        assert_eq!((findings.len(), findings[0].code), (1, Code::IndexMissing));
        assert_in_guide(&findings[0].detail);
        findings[0].detail.clone()
    };
    let found = detail(&[
        ("3rdpartylicenses.txt", "x"),
        ("browser/index.html", &page),
        ("browser/de/index.html", &page),
    ]);
    assert_eq!(
        found,
        "`browser/index.html` is in a folder; archive the content of `browser` instead. Angular writes the app to \
         `dist/NAME/browser`."
    );
    let found = detail(&[("a.txt", "x"), ("out/index.html", &page), ("out/b/index.html", &page)]);
    assert_eq!(found, "`out/index.html` is in a folder; archive the content of `out` instead.");
    assert_eq!(detail(&[("a.txt", "x"), ("b/c.txt", "x")]), "The bundle needs the file `index.html`.");
}

#[test]
fn a_finding_about_an_unknown_script_type_has_advice() {
    for (kind, words) in [
        ("speculationrules", "blocks fetching pages ahead: remove the script"),
        ("text/partytown", "remove Partytown"),
    ] {
        let page = format!("<!doctype html><script type=\"{kind}\">x</script>");
        let (code, detail) = with(Vec::new(), "index.html", &page);
        assert_eq!(code, Code::UnsupportedScriptType);
        assert!(detail.contains(words), "{detail}");
    }
}
