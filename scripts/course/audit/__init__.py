"""scripts/audit: looks at every page of the built site with the tools that judge sites.

server    serves the site as a web server does: compressed, and to be kept by the browser
browser   what a browser loads and shows: weight, requests, shifts, accessibility, print
markup    the Nu HTML checker
links     links, ids and addresses, by a crawl of the built HTML
__main__  the table, and whether the budgets are kept
"""
