//! Signatures by the right key with a different padding (RFC 8017, 8.2.2 and 9.2).

use auth::jwt::Refusal;

use crate::rsa::RsaPair;
use crate::support::{unsigned, verdict};

const HEADER: &str = r#"{"alg":"RS256","kid":"one"}"#;
const CLAIMS: &str = r#"{"sub":"ada","exp":1800000060,"jti":"0"}"#;

/// The first key's signatures over [`HEADER`] and [`CLAIMS`]: the flaw, and the signature.
const SIGNATURES: [(&str, &str); 21] = [
    (
        "the second block type",
        "eNNqnwz-2nPrxKjVsIlwWDdcbudSHrZT9GpDDnFeK-sqtkvuId46ej9GAhI-Za61UisSwfUMx5MRT_FFVkqEaYY7VzTn-hepOaCnPs1CQiTk4dtf7U5L877Q9tyQW6X0Gsm35HOfyVPZrEVneufEd0LH8JBi0q9cW1sYen9rSbACf7xxP9cPzcsw2w3d2f-OuyKabsccjwZcMF8Vs0zujj3IYOEkUT4AdGYWa0MjmXzYsfcdT8Y71qJHsfAVASenrt4aVGiZEENlb8PGRldLGMtXv7To9hXYz_bUmpuTyI5oF11BHgxvm6a94m1RUyAhfv0dAIu895Rt1HAODVcktg",
    ),
    (
        "block type zero",
        "DyArHjh7uNC_CN96u7IMZUKYznjhLSkLMtsBzUtuwNIInNPcm_pDtG18kbXdbzGwgi82g8Zvg7oU2hXFwPFSQTuThvEiqy8-zgdHsiW-Fm4q3aQ4Bx-9lw6fOni-VPt163IIDPEQkEemPL8GDkOgczVPEtU6IDyTWCzYN0uD7iYdmcCC95KDKp0sxWLNOOH5uswND_1oAzokjrr9XePv61B3nsN_rNqYhDFeTKsMnBWLZzhuguVXLtuYDJqsJa95G64jdJcg49KxyOAt79GdXtEDzt4xsTFMv2CdmkZdtUJjIg7HYPXosZBuJ8CcU4ro-mChEOo60YVYfqQ326aMhA",
    ),
    (
        "a first byte that is not zero",
        "PBhQP0NrY7Hwpzz33RbF2z00aWpGCeE-9FxLw5GDfHSwXRPN4GExmlaoGIy17r0umQJeZzI2ThWTvVIYfnMJ6y97iJgr79P_Htox40u444FRyaDJPYTCBrzCNRUGu25BRV7-OrZc1YQWoFj5R7uOZtGvlk5yyDLVmJRMKCefqMB72DlobqQoL8SIOgqvan0KI_-3eyEwSB3eSNkrqsehTvPhhPE-3lOCMEZL3khYFndz03o66-ADkWX_PMCJuiP7iUmONXy3fxiiWiqJR_zmJBqNZCqGqrq6MbhAdDj1G8XtS6JU1gjuTdfLscEAXcFy0QmdTv-EwEr3458rMMNSkg",
    ),
    (
        "filled with zeros",
        "JsWC-JhSdHUcEZPWed9I0ebWQ7zZcWfQKYnkAF5PXYkASUpDc6Oe96r06QMM3DD9y9P_xgo9T3KYwhZKHqxJOxjv-DnMtmm3rIgx15jVWbt3Jue_mqdo7OoR92T37BEOYklf2-2QPUAo8R7RVzAOAaiB7yhlNK7XaRSq4dXFSXx_3S9IkvkY5xwjIlzlYAGrCsU3XZusnSzWBIoFjbGr-Oly4EbRdcmpqN-EYv2qki7o7BAMf1LeE0XPe8byWrWvj5rNY2nwMvT2vVsezEzbfrE5fz6MP-WrFFlG6hWV9o4qTSI8GsDTBanyd8FgMb74RrTjA2_JjUs0kiZJ2asa5Q",
    ),
    (
        "one byte of the filling",
        "aZC5y4x3IOhhDVeBzQeJo3qVyAGv3iVJHxdI7Zpe83S8x8sfk-ncfyjvBuGglMN3bECaIKNoH3QJYS8djg728S07yIiybnHYLWxgCgKc_VKN5mJKwJpmLUc4lN_TnVVcEoS_NCKXSyY6946oSpEo-ixuJb1efTWCPbA9tI3MacLwJsAzwdUpvDgLP-PgD657H9wiTeMRC1MuPwRLr4nQMIQJJHJmjiI3mSPpvIxKYe-ZwBs_xc0lDnYYbObF2sQe15LH6iBqS4ys9MDf_9oLVM7cDj1BTPxKuun_aaczfmbwVtTilM20HPD0DhS2xmAxQOYCJVClZCrhUwo90PtuTA",
    ),
    (
        "no zero before the digest",
        "F-PEUFg9N6JJvmtfVDKoIUq_5yDlS3uQgQYjmFPiTtuK5cxViDtgpfmrAYF8TF_aEE8UdFvKx8fMRQ8WVzmYgwhaFDCEdJbpmBxkyOwYVLRpzWtAUcWyHRHxlcneJreoQvGhFBrVIgRSMXKiTbGxrSiuIwi_L0owOkEUAaLLCCsWm2YPW8tV97dDUvUZNXN2NtgrdPGsqf6H09E0dMtypIGY233cMS8BgXuuHg2tzCREyuyAz8pMXwGeUutRv_yXpfp0g2cgvQPWYXRhswJJRnH2IMbbh1jUNzhusZS3tEz4YR1vNf2C1rF5ZxA8MbWVm6JhVSs-q8eBH4eLshf0kQ",
    ),
    (
        "two zeros before the digest",
        "DWrUH7pYyqs8WVnrfZw32BhvxIGrCS0S526rI05cV7NMqE7-mFzrLm-36Q2vSoPHtfDwAuOe0r5cRvUXV8B_UtT2trpk640pqCXTBi0r_AE8QflXOgG95FwQXZvHk4F9opYEp2eX4XA8xl_umiF2GqBX_0VeEPcXiGs5Nvnhthf5Ulau4HLkPnYLu35BIHtS34Sk8Iy8isHNwJEcdyDuarYEB1nfRFAHlWrIda4ab67gPvoRoR0IRrA2M_J41UBltLZi48VdqDDsk2BVdYi2lgVuw3tXmzEQIxD8_Lxa7Q5vxEKMw8Riv2mAnwmgsUUXE9bYO8D3aR7fR1vQFt4zqA",
    ),
    (
        "hardly filled, and noise behind",
        "YMlNkfYJvxgLiK5aWlf09VSE9gts_0USM0H_j5m08IDm2oMp2k0yKdiH2jmeuakJ92YAWGNAV57SuRCwZHMDKS914RLGhWWLuSpNhbRYy1EwKocVapr7jHEkz6etNYe_wxLC3Q89AN2EG8LCIxxqw0zHrYS4ZtOp1t0B2ZuBR0vxD9eYwJiHwaO1UTzQlBxwQTdgThgoC85t2P5IFOVlM9AHSIudifa88xhVkx8O3XmAQU-MSF7wNNLMvw1ls5e-fmXeJEAu-IGFliWGwpeZlZEEHI-YhGPMgjEUxptIxSkX8G0i2xOqLWn9DSjCvu5LaYr671v4pQAz3OqRYrM-7w",
    ),
    (
        "filled with eight bytes, and zeros behind",
        "NObk0ziAYNklXRgipjjx9Paf3_ZBeBvk2HfikkBIeKfoamU9vqOGuX8FW3d-1YJthZTbsIPC_6_xxJSbSFImwYmPGazCi57v1TvVQfQe0--hU0xURkIfv1QZAod6Z1uFTmdCUyGyF7E-HkdV0UDFcrSHe1UFVI6bieH4zQBGJiOct2x7-7J-L1qhza-ROaqOgMR35S5ZAABNaG23DAwsVyIJIXyF33FhSqkxO2Qk85dV24F6LUztO0D8_m53D-ZQnFtI2KQhUZgTKi4M7bZHDDdeta7BOZAemc4rkmqVbqlHOBHjCKXINmSv95e5jontLVuskymDfs1C17il7SHBDw",
    ),
    (
        "a byte behind the digest",
        "CkyASYUqdxHokBWvFnWJY5asSfvqiDEGylT9BtxndVTFfk58opiHk3hh5CFyakezeCHzUOQH4qOA6mKvROG44NLmDBWOvmX7lH7k47ijKFKMl6_sj756wrw_TsP5M1A7UOpf_DWpUb6K_uM2PVAzzDB6zJsGCzpQph3oZQ9H96a3CC8xdtggFQnjpgpB7WG7eObeZdnm7CByxlFRCeFGTu2vcnORGL5LeQ1u8Hmg6dvmWVyvYITc9nuDwu2Xwm_AjohWq3wrMkcJA3CRBKGLGl3MEABlqkWCYOAE7FCrCri-ipS3ffSgWp03uEX0nql_nyzbnVIqpw9iOhK1kOgLww",
    ),
    (
        "a digest that is cut off",
        "JSbQFgWGowEvo4vjSeE5TV_SmwpItHtJD9CE7e9psZ4q3RnIHpr6FBDflcz53DoEF6vWA4ORWmT85AdUMnk_Ph77p5n_bCYQyo7JTL3zf_SASv_lB7nH3Ge4RsWE0RxAsZd4h8qxKUN6qStKn7rsGDH97ryQBDWVLsXIEb7TxgYvqYZLo3D2_2gMRe798ftpaZ9aiKf51aUXEpEjbidk9lrzWD5MWkycUjJGLSrekCwrPAkD1D5FB0as4bmF1WZvAkObMRfeHA6kQhnd9RA2eYZ0hheA56jd-ei58gvlKMdS0eDSCC9BOTVyIoIKST2halhOdbE1e-86FioNn9G1lA",
    ),
    (
        "a digest alone",
        "NSNSfZHoE4S6ZQesF0fXg_Fhb1QeqNJ9gKJ9rsFjLc2xTzqKHIVzX6x90we_-GH6RZg5KYa0_r0WhG54JJJSc-85Cd5e0uX6gcuK6Oz510pxmHR2AxC_KcZsv_OkoHa7hSkVPfn8dRj9io3w4v5yHk6DFOudKv2FNpgF-kEkxsEYUdDLDlRdUvxMhQls8Fs-mTH6OZBUdIYhg2BlbFN62iAm0LoOV76iFdJSZEZs_x_YM55ejyYq26g-DKci55aWKrY4rJZdjVLXniS_5x_vYLiF04dkXYkX0TEnijwKUu790aHj0hCKT7VYgb0TmQdzL74QJIk6_yTTDbjhdQw7dw",
    ),
    (
        "no parameters",
        "H1b2wJ6MIbYzp_VdmTsVUC5cBIOZjNyq4hBusjIToC_GuvkV0qXXKGoRVpj4wqdn42CyE9oTVJbUALfsRAAZeovlMxL5KUXJmKEcSBIO8L9VU0ZlAr4QBK5tSrUuibuEW0NoDnQhI-7jjCnov9riH6u67GsvaWlnD5JI-2vo1Nxo26isngG402bLFNDHAsrCY3fI8oTi8GqSMvqr4aN3fVVAPCL4cwK2hq8O58fdcBSZGV5saruk_0r0e1mxlfiC5LKbQ21eXhlM1AkX500sdY4MXriw9f6zawXn3mbMn0cCV5SiPpRrXYl3XLsToFIEYSENAZVZSxHj38n_CKXTsw",
    ),
    (
        "noise as parameters",
        "gWq5Be-9kSPPlPwD6pqYW0r2mRDudZ_X29UfD8Vw6S9wRuMyP2OzDs-k0VHaT4vJ44KrpVBWpJabQ1aGFddknl6PLn3LFXK6jKrLeewPP_lwW2Ho8c5aqm6ruc3UMulb601ezKTqb4IpqnKnhS_MZSaG3sdz5kSLBhtOawJ6ZmERzUYKxjDZT6PURge5rmEFWW-_QXbJN-W6s8F2ZS7pFh0ka60ok5krNj8ZstMqC8DRuJOkU_rTuYf-U4CQAWbQDTQrGGNDpH0kKRIWkQV2K4b8eJMhnfZBSjVr9j42OW4TAuwQht5ws25JwvBhmJDr3FeFwySFZAgnSVXmplljWQ",
    ),
    (
        "a length in long form",
        "CU401zttOkjTI3joBQtzzKQyVY1EbvPJOg6VJpe4AtggIqt7oqUTnSrHaCgfCN5dT7gUSZe6wkPc33nNO4tfsweRYCnVZvRQ2WtVi2GNhZTfa0_lGvtD_UGTr28aUiydFrIKaw63fzrSeFZnkQLo0HZJg0_trtvAqcGKn2XKP9qJBGtyQaYDYye7lf9aN61zOU3g_UQHo2Oc9Axn4Fffkah5KuVsqiqM1YTf9TD__GxKONWgcr6ffb2s3KfoKYf-J3dSoU2zWBJ2l1nK8kTECKf6DJQ_A0BgftfsOnNwrANwfqduoOuQtr00j7j74Fi9kqkfB2xWJBLld63Q9fbLgw",
    ),
    (
        "SHA-384 by name",
        "dAcRRX8jA1JAb04uD2n06eyaj1ETjLhyRsYTRR98ExUq-TzjK-69q6IyPIPzStmBwDDhiTkg4qQPs8hJ2FL2zY-HZmxBLJMSoENbjeGw70IZMF30N1TBqsC-vvwgqR1vxn7lwLGSt69ecIjTElX6-Y-5MM0Ixcs6rcW5opE_piG4qvUrMr1ZgUOcWtmFhKtmZwr66jWEoYm63fqm9gcznESB3wrSQDnNBdEBWh0YwIdV65ceUZpu-aORPScdwRa7WYHozaZqAod39o6JsTe5nt3Gfa2UeokLHXlho5Fkn354sb8jRV7zBJ4SCqbzYy74q0ZpEB14hKb8we4cTO07QA",
    ),
    (
        "SHA-1",
        "NfLMwAIKIanqTHXg6C52X-6jsbenCCLKM6AhChNNYozcrN_tKMceWC7j7R-ApF1Tk3IAsWpl4BmKZO3t43ySDxbB4NEcqfi01myjO1kgMCQxg_bYKdzDRDi7XVlrYuNdgV3U_nQ_RlYm5RVdSpLpJnUWDPN0rmAGK0p2rQly67Owy3iYXQRYCJlBysLrXzOwdT6fuVqaIgG1sFaFVLaUPXT_jkxbu4rEvnmetE-zvJi1iZEs1bXKJ0cHdw3RUFL7sSPFmoXd1g0SoeNA_PmOVi6pSOXk6vzl3nMrLjLC0fpCPVwYdF9RW_Sp-Rk0f2mc6_EPJ7k1xkT264uCS5hWBg",
    ),
    (
        "SHA-512",
        "C6foK4L6DwDSfzqOjUhU5j9Zu1s69moVov5rbjd0WG3tMaluGGCLqK5T8SByZU0h-kFFgDvZI88Y_FBvNyItCEiiQdEaoOm6OqtaUB3PU60bI8EvTkL73IAf7Q5hHUlXAvvnl_nYYRNppmxLF3u2Qe-cNTIL2fYnq0EXpRfjFLKoz2KUCdcL7jENBzsqky0d8ue3MBGrIMyR2GO0-74lASXEL21If9x8bMdXrpp_5Msbn0ylu8lrYvNPDIqR_Ytnh4rhrjmBuHUkkAPel7zq3D_YNHnSJ5t8mVzYDFE9Cf6wRaY7zLm4GUoaEbLtnIHC2n4nXhfBYyBmTuN13fGXTQ",
    ),
    (
        "a digest of zeros",
        "PPyyYoHC8i9-fIgOb0LIw4wKGlxdpz-hsC5jVlpSbMT8_jBRqMW4GqXqPuAt6nR6EptaLfLjU64_wGQDaIbz6DU2NDkc18h90MKzw3MNLLT7iXGXX-A3gr5QgRejMEZXdtu6PYIIuyJrdCYbgiQy_EF8FuQ0uQbaQEKXijOQtKkB80G49XgSjJXxfkgMPm3ti8gb24xXo8Ovd4C3Jk4HN3qDgRm2_ab9tLkq3J0XRG6ZDAP7FGZAt5NrBFjfEcx6oc1j_8VM1Yofzgn9pni2hAkpVvgwc26Doa7C0m9B9wwWSww0fV_xda_lbsKY-pfOEEKeKgyFIb4YyWUtaH4oyw",
    ),
    (
        "not padded",
        "DyArHjh7uNC_CN96u7IMZUKYznjhLSkLMtsBzUtuwNIInNPcm_pDtG18kbXdbzGwgi82g8Zvg7oU2hXFwPFSQTuThvEiqy8-zgdHsiW-Fm4q3aQ4Bx-9lw6fOni-VPt163IIDPEQkEemPL8GDkOgczVPEtU6IDyTWCzYN0uD7iYdmcCC95KDKp0sxWLNOOH5uswND_1oAzokjrr9XePv61B3nsN_rNqYhDFeTKsMnBWLZzhuguVXLtuYDJqsJa95G64jdJcg49KxyOAt79GdXtEDzt4xsTFMv2CdmkZdtUJjIg7HYPXosZBuJ8CcU4ro-mChEOo60YVYfqQ326aMhA",
    ),
    (
        "the signature and the modulus",
        "-y2F2dQ_5fYAzkveiDipmMHVseO0v6vHx4hAYt_AX2D29ymgkZVAd7dhG0-hP4nLTfN8o3XIKNBHyE_4vSV7X7WhkXApkx3Xv5lYWVmLriDkW7x1iW1ppf-cELVXO5nJvoJp02xx5E81j5p4_rW8zs5j7IuYtysFy7S-nDJn2ulfMSF1MVFUPU2pyYQ9Zv-6l4aMwSWfxX4GstJBzzeFjne8APFbI3B_uFsJm5j5-lh5mqCwuGoDoZkmCADnj8dPJVpWXsbPkbKWfuCrksBiyUKg7RwvUMNrIpJWRyN0WjKQdxZacoa1LuuxjkVy-wcV1o_V3d6RVokswkNBf9wWSg",
    ),
];

#[tokio::test]
async fn a_signature_has_exactly_one_valid_padding() {
    assert!(verdict(&RsaPair::first().sign(HEADER, CLAIMS)).await.is_ok());
    for (name, signature) in SIGNATURES {
        let token = format!("{}.{signature}", unsigned(HEADER, CLAIMS));
        assert_eq!(verdict(&token).await.map(|claims| claims.subject), Err(Refusal::Invalid), "{name}");
    }
}
