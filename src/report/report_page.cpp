// The HTML around the pictures: it reads well on a phone, on a desk, on paper, by day and by night.
#include "normlab/report/report_page.h"

#include "normlab/base/text.h"

namespace normlab {
namespace {

constexpr std::string_view kStyle =
    "*{box-sizing:border-box}body{margin:0 auto;max-width:1500px;padding:16px;background:var(--paper);color:var(--ink);"
    "font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif}"
    "h1{overflow-wrap:anywhere;font-size:1.5em;line-height:1.25;margin:.2em 0 .4em}h2{font-size:1.15em;margin:1.6em 0 "
    ".5em}"
    "p{max-width:46em;margin:.4em 0}pre{white-space:pre-wrap;overflow-wrap:anywhere;font-size:.9em;max-width:80ch;"
    "border-left:3px solid var(--grid);padding-left:12px}"
    ".figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,400px),1fr));gap:20px}"
    "figure{margin:0;break-inside:avoid;max-width:560px}.wide{overflow-x:auto}"
    "table{border-collapse:collapse;font-size:.92em;font-variant-numeric:tabular-nums}"
    "th,td{text-align:left;vertical-align:top;padding:4px 12px 4px 0;border-bottom:1px solid var(--grid)}"
    "th{font-weight:600}td.holds,td.fails,td.undecided{font-weight:600;white-space:nowrap}"
    "td.holds{color:var(--c2)}td.fails{color:var(--c6)}td.undecided{color:var(--c4)}"
    // On a phone each row is a block of its own, each cell after the name of its column.
    "@media(max-width:700px){tr{display:block;border-bottom:1px solid var(--grid);padding:6px 0}tr.head{display:none}"
    "td{display:inline-block;max-width:100%;overflow-wrap:anywhere;border:0;padding:1px 14px 1px 0}"
    "td[data-name]::before{content:attr(data-name) ': "
    "';color:var(--soft);font-weight:400}td:first-child{display:block}"
    "td:empty{display:none}}"
    "summary{cursor:pointer;margin:1.2em 0 .4em}footer{margin-top:2em;color:var(--soft);font-size:.85em}"
    "@media print{body{font-size:11pt;max-width:none}.figures{grid-template-columns:1fr 1fr}h2{break-after:avoid}}";

std::string cell_class(std::string_view content) {
  return content == "holds" || content == "fails" || content == "undecided" ? text(" class=\"", content, "\"") : "";
}

// Of a cell, where its place in the row does not tell.
std::string name_of(const Row& head, std::size_t column, FirstCell first) {
  return (column == 0 && first == FirstCell::name) || head.size() < 3
             ? ""
             : text(" data-name=\"", svg::escaped(head[column]), '"');
}

}  // namespace

std::string html_page(std::string_view title, std::string_view body) {
  return text("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
              "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
              "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n<title>",
              svg::escaped(title), "</title>\n<style>", svg::style(), kStyle, "</style>\n</head>\n<body>\n<h1>",
              svg::escaped(title), "</h1>\n", body,
              "<footer>Point at a picture to read its values. Every number comes from the files of the runs."
              "</footer>\n</body>\n</html>\n");
}

std::string html_section(std::string_view title, std::string_view body) {
  return body.empty() ? "" : text("<section>\n<h2>", svg::escaped(title), "</h2>\n", body, "</section>\n");
}

std::string html_figures(std::span<const svg::Picture> pictures) {
  if (pictures.empty()) return "";
  std::string out = "<div class=\"figures\">\n";
  for (const svg::Picture& picture : pictures) out += text("<figure>", svg::element(picture), "</figure>\n");
  return out + "</div>\n";
}

std::string html_table(const std::vector<Row>& rows, FirstCell first) {
  std::string out = "<div class=\"wide\"><table>\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    out += i == 0 ? "<tr class=\"head\">" : "<tr>";
    for (std::size_t column = 0; column < rows[i].size(); ++column) {
      const std::string cell = svg::escaped(rows[i][column]);
      const std::string verdict = cell_class(cell);
      out += i == 0 ? text("<th>", cell, "</th>")
                    : text("<td", verdict.empty() ? name_of(rows[0], column, first) : verdict, ">", cell, "</td>");
    }
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

std::string html_paragraph(std::string_view content) {
  return content.empty() ? "" : text("<p>", svg::escaped(content), "</p>\n");
}

}  // namespace normlab
