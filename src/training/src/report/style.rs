//! Styles for the page and the curve, light or dark as the reader's system.

/// All rules are scoped to `.curve`, because a style inside an inline SVG applies to the whole page.
pub(super) const CURVE: &str = "\
.curve text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;fill:#475569}\
.curve .paper{fill:#fff}.curve .axis{fill:none;stroke:#64748b}.curve .grid{fill:none;stroke:#e2e8f0}\
.curve .best{fill:none;stroke:#0369a1;stroke-width:2}.curve .point{fill:#0f172a}\
.curve .seed{fill:none;stroke:#b45309;stroke-width:1.5;stroke-dasharray:6 4}\
.curve .band{fill:#7dd3fc;stroke:#0369a1}\
@media (prefers-color-scheme:dark){.curve text{fill:#a8b5c8}\
.curve .paper{fill:#0f172a}.curve .axis{stroke:#94a3b8}.curve .grid{stroke:#334155}\
.curve .best{stroke:#38bdf8}.curve .point{fill:#e2e8f0}.curve .seed{stroke:#fbbf24}\
.curve .band{fill:#075985;stroke:#38bdf8}}";

/// The surrounding page.
const PAGE: &str = "\
:root{color-scheme:light dark}\
body{margin:0;background:#fff;color:#0f172a;\
font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif}\
main{max-width:56rem;margin:0 auto;padding:1.5rem 1rem 4rem}\
h1{font-size:1.6rem;margin:0 0 .5rem}h2{font-size:1.2rem;margin:2rem 0 .5rem}h3{font-size:1rem;margin:1.5rem 0 .5rem}\
h1,h2,h3,p,td,th,li,figcaption,summary{overflow-wrap:anywhere}\
.verdict{font-size:1.1rem;padding:.75rem 1rem;border-left:4px solid #64748b;background:#f1f5f9}\
.verdict.improved{border-color:#047857}\
table{border-collapse:collapse;width:100%}caption{text-align:left;color:#475569;padding-bottom:.25rem}\
th,td{text-align:left;vertical-align:top;padding:.25rem .75rem .25rem 0;border-bottom:1px solid #cbd5e1;font-weight:400}\
thead th{font-weight:600}tbody th{color:#475569}td.number,th.number{text-align:right;font-variant-numeric:tabular-nums}\
figure{margin:0}svg{max-width:100%;height:auto}\
pre{font:14px/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre-wrap;overflow-wrap:anywhere;\
background:#f8fafc;border:1px solid #cbd5e1;border-radius:6px;padding:.5rem .75rem;margin:.5rem 0}\
pre ins,pre del{display:block;text-decoration:none}pre ins{background:#dcfce7;color:#14532d}\
pre del{background:#fee2e2;color:#7f1d1d}pre span{display:block}pre .skipped{color:#475569}\
.facts th{white-space:nowrap}summary{cursor:pointer}\
@media (prefers-color-scheme:dark){body{background:#0f172a;color:#e2e8f0}\
.verdict{background:#1e293b;border-color:#94a3b8}.verdict.improved{border-color:#34d399}\
caption,tbody th,pre .skipped{color:#a8b5c8}th,td,pre{border-color:#475569}pre{background:#1e293b}\
pre ins{background:#14532d;color:#dcfce7}pre del{background:#7f1d1d;color:#fee2e2}}\
@media print{main{max-width:none}}";

/// The content of the page's only `style` element, for a policy that allows it by its digest.
#[must_use]
pub fn page_style() -> String {
    format!("{PAGE}{CURVE}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_load_nothing_and_end_no_element() {
        for style in [page_style(), CURVE.to_owned()] {
            assert!(!style.contains('<') && !style.contains("url(") && !style.contains("@import"), "{style}");
            assert_eq!(style.matches('{').count(), style.matches('}').count());
            assert!(style.contains("prefers-color-scheme:dark"));
        }
    }
}
