-- EXTRACTVALUE and UPDATEXML: paths, predicates, fragments, documents that are none.
SET NAMES utf8mb4 COLLATE utf8mb4_general_ci;
SET @x = '<a aa1="aa1" aa2="aa2">a1<b ba1="ba1">b1<c>c1</c>b2</b>a2</a>';
SELECT EXTRACTVALUE(@x, '/a'), EXTRACTVALUE(@x, '/a/b'), EXTRACTVALUE(@x, '/a/@aa1'), EXTRACTVALUE(@x, '/a/@*'), EXTRACTVALUE(@x, '//*'), EXTRACTVALUE(@x, '/a//*');
SELECT EXTRACTVALUE(@x, '/a/b/../@aa1'), EXTRACTVALUE(@x, '/*/*/*'), EXTRACTVALUE(@x, '/a/b/c/ancestor::*'), EXTRACTVALUE(@x, '/a/descendant-or-self::*'), EXTRACTVALUE(@x, 'a/b/.');
SET @y = '<a><b c="x">1</b><b c="y">2</b><b>3<d>e</d></b></a>';
SELECT EXTRACTVALUE(@y, '/a/b[1]'), EXTRACTVALUE(@y, '/a/b[last()]'), EXTRACTVALUE(@y, '/a/b[position()<3]'), EXTRACTVALUE(@y, '/a/b[@c]'), EXTRACTVALUE(@y, '/a/b[not(@c)]'), EXTRACTVALUE(@y, '/a/b[@c="y"]'), EXTRACTVALUE(@y, '/a/b[d="E"]'), EXTRACTVALUE(@y, '/a/b[.>1]'), EXTRACTVALUE(@y, '/a/b[@c="x" or d]'), EXTRACTVALUE(@y, '/a/b[@c and .=2]'), EXTRACTVALUE(@y, '//d|//b[2]');
SELECT EXTRACTVALUE(@y, 'count(/a/b)'), EXTRACTVALUE(@y, 'count(/a/b) > 1'), EXTRACTVALUE(@y, '/a/b[count(d)=1]'), EXTRACTVALUE(@y, '/a/b/text()'), EXTRACTVALUE(@y, '/none'), EXTRACTVALUE(@y, '/a[contains(b,"3")]/b[1]');
SELECT EXTRACTVALUE('<a>&lt;&amp;&nbsp;</a>', '/a'), EXTRACTVALUE('<a b="&lt;"/>', '/a/@b'), EXTRACTVALUE('<a>x</a><b>y</b>z', '/b'), EXTRACTVALUE('<?xml version="1.0"?><!DOCTYPE a><a>x</a>', '/a'), EXTRACTVALUE('<a><!-- c --><![CDATA[<x>]]></a>', '/a'), EXTRACTVALUE('', '/a'), EXTRACTVALUE('abc', '/'), EXTRACTVALUE(NULL, '/a'), EXTRACTVALUE('<a/>', NULL);
-- accept: the place in the warning is where expat stops
SELECT EXTRACTVALUE('<a>x', '/a');
-- accept: the place in the warning is where expat stops
SELECT EXTRACTVALUE('<a>x</a></b>', '/a'), UPDATEXML('<a>x<a', '/a', 'q');
SELECT EXTRACTVALUE('<a/>', '/a[');
SELECT EXTRACTVALUE('<a/>', '/<a>');
-- accept: refused here, with the name of the function
SELECT EXTRACTVALUE('<a/>', 'foo()');
SELECT UPDATEXML(@x, '/a/b/c', '+'), UPDATEXML(@x, '/a/@aa1', ''), UPDATEXML(@x, '/a/@aa2', 'z="1"'), UPDATEXML(@y, '/a/b', 'q') = @y, UPDATEXML(@y, '/a/none', 'q') = @y, UPDATEXML(@y, '/', 'q'), UPDATEXML('<a>é<b>ü</b><c/></a>', '/a/b', 'ß'), UPDATEXML('<a><b/><c x="/>"/></a>', '/a/b', '<d/>'), UPDATEXML('<a/>', '/a', NULL), UPDATEXML('<a>&lt;<b/></a>', '//b', '&');
CREATE TABLE x (id INT PRIMARY KEY, d TEXT);
INSERT INTO x VALUES (1, '<a><b>1</b></a>'), (2, '<a><b>2</b><b>3</b></a>'), (3, NULL);
SELECT id, EXTRACTVALUE(d, '/a/b[1]') FROM x WHERE EXTRACTVALUE(d, 'count(//b)') > 1;
UPDATE x SET d = UPDATEXML(d, '/a/b', '<c>4</c>');
SELECT * FROM x;
SELECT EXTRACTVALUE(d, '//c') AS c, COUNT(*) FROM x GROUP BY c ORDER BY c;
-- An element may repeat an attribute; a DOCTYPE may define things.
SET @r = '<!-- <a c="1" c="2"> --><a>x<b c="1" c="é" c="3">y</b><b d="4" c="5"/></a>';
SELECT EXTRACTVALUE(@r, '//@c'), EXTRACTVALUE(@r, '//@c[2]'), EXTRACTVALUE(@r, '/a/b[sum(@c)=4]'), EXTRACTVALUE(@r, '/a/b[@c=3]'), EXTRACTVALUE(@r, 'count(//@c)');
SELECT UPDATEXML(@r, '/a/b[2]', '<z/>'), UPDATEXML(@r, '/a/b[1]/@c[2]', 'q="7"'), UPDATEXML(@r, '/a/b[2]/@c', 'e=""'), UPDATEXML(@r, '/a/b[1]', ''), UPDATEXML(@r, '//@c', 'x');
-- accept: the place in the warning is where expat stops
SELECT EXTRACTVALUE('<a b="1" b="2"><c></a>', '/a');
SELECT EXTRACTVALUE('<!DOCTYPE n [ <!ELEMENT n (#PCDATA)> ]><n>k</n>', '/n');
-- User variables in a path.
SET @i = 2, @s = '1 and more', @t = 'y', @none = NULL;
SELECT EXTRACTVALUE(@y, '/a/b[$@i]'), EXTRACTVALUE(@y, '/a/b[@c=$@t]'), EXTRACTVALUE(@y, '/a/b[$@none]'), EXTRACTVALUE(@y, '$@none'), EXTRACTVALUE(@y, '/a/b[position()<$@i]'), UPDATEXML(@y, '/a/b[$@I]', 'two');
SELECT EXTRACTVALUE(@y, '/a/b[$@s]');
SET @i = 1;
SELECT EXTRACTVALUE(@y, '/a/b[$@i]'), EXTRACTVALUE(@y, '/a/b[$@i + 1]');
SELECT id, EXTRACTVALUE(d, '/a/b[$@i]') FROM x WHERE id = 1;
SET @i = 2;
SELECT id, EXTRACTVALUE(d, '/a/b[$@i]') FROM x WHERE id = 2;
SELECT EXTRACTVALUE('<a/>', '/a[@x=$y]');
SELECT EXTRACTVALUE('<a/>', '$@i/a');
SELECT id, IF(@k := id, EXTRACTVALUE('<a><b>1</b><b>2</b><b>3</b></a>', '//b[$@k]'), 0) FROM x;
