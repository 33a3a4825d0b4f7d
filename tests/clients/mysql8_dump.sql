-- MySQL dump 10.13  Distrib 8.0.36, for Linux (x86_64)
--
-- Host: db1.example.com    Database: shop8
-- ------------------------------------------------------
-- Server version	8.0.36

/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
/*!40101 SET @OLD_CHARACTER_SET_RESULTS=@@CHARACTER_SET_RESULTS */;
/*!40101 SET @OLD_COLLATION_CONNECTION=@@COLLATION_CONNECTION */;
/*!50503 SET NAMES utf8mb4 */;
/*!40103 SET @OLD_TIME_ZONE=@@TIME_ZONE */;
/*!40103 SET TIME_ZONE='+00:00' */;
/*!40014 SET @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0 */;
/*!40014 SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0 */;
/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */;
/*!40111 SET @OLD_SQL_NOTES=@@SQL_NOTES, SQL_NOTES=0 */;
SET @MYSQLDUMP_TEMP_LOG_BIN = @@SESSION.SQL_LOG_BIN;
SET @@SESSION.SQL_LOG_BIN= 0;

--
-- GTID state at the beginning of the backup 
--

SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-77';

--
-- Current Database: `shop8`
--

/*!40000 DROP DATABASE IF EXISTS `shop8`*/;

CREATE DATABASE /*!32312 IF NOT EXISTS*/ `shop8` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci */ /*!80016 DEFAULT ENCRYPTION='N' */;

USE `shop8`;

--
-- Table structure for table `books`
--

DROP TABLE IF EXISTS `books`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `books` (
  `id` bigint NOT NULL AUTO_INCREMENT,
  `author_id` int unsigned DEFAULT NULL,
  `title` varchar(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci NOT NULL COMMENT 'as printed',
  `code` varchar(20) CHARACTER SET latin1 COLLATE latin1_swedish_ci DEFAULT NULL,
  `exact` varchar(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL,
  `price` decimal(10,2) DEFAULT '9.99',
  `rating` double DEFAULT NULL,
  `kind` enum('novel','poem','it''s') COLLATE utf8mb4_0900_ai_ci DEFAULT 'novel',
  `tags` set('a','b','c') DEFAULT NULL,
  `flags` bit(5) DEFAULT b'101',
  `cover` longblob,
  `summary` text COLLATE utf8mb4_0900_ai_ci,
  `published` datetime(6) DEFAULT NULL,
  `seen` timestamp NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  `at` time(3) DEFAULT NULL,
  `y` year DEFAULT NULL,
  `doc` json DEFAULT NULL,
  `token` varchar(40) DEFAULT (concat(_utf8mb4'book-',`kind`)),
  `full_price` decimal(12,2) GENERATED ALWAYS AS ((`price` * 2)) STORED,
  `upper_title` varchar(200) COLLATE utf8mb4_0900_ai_ci GENERATED ALWAYS AS (upper(`title`)) VIRTUAL,
  `active` tinyint(1) NOT NULL DEFAULT '1',
  `old_key` int DEFAULT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `code` (`code`),
  KEY `author` (`author_id`),
  KEY `title_prefix` (`title`(20),`published` DESC),
  KEY `hidden` (`old_key`) /*!80000 INVISIBLE */,
  KEY `functional` ((lower(`code`))),
  FULLTEXT KEY `words` (`title`,`summary`),
  CONSTRAINT `books_author` FOREIGN KEY (`author_id`) REFERENCES `authors` (`id`) ON DELETE CASCADE ON UPDATE RESTRICT,
  CONSTRAINT `price_positive` CHECK ((`price` >= 0)),
  CONSTRAINT `kind_known` CHECK ((`kind` in (_utf8mb4'novel',_utf8mb4'poem',_utf8mb4'it\'s')))
) ENGINE=InnoDB AUTO_INCREMENT=104 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci ROW_FORMAT=DYNAMIC COMMENT='what is sold';
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `books`
--

LOCK TABLES `books` WRITE;
/*!40000 ALTER TABLE `books` DISABLE KEYS */;
INSERT INTO `books` (`id`, `author_id`, `title`, `code`, `exact`, `price`, `rating`, `kind`, `tags`, `flags`, `cover`, `summary`, `published`, `seen`, `at`, `y`, `doc`, `token`, `active`, `old_key`) VALUES (100,1,'One','c-1','Ä',1.50,0.1,'novel','a,c',_binary '',_binary '\0\'\"\\\n\r\Z','a \'quoted\' line\nand another','2024-01-02 03:04:05.678901','2024-01-02 03:04:05','-12:34:56.789',2024,'{\"a\": [1, 2.5, null], \"b\": \"é\"}','book-novel',1,NULL),(101,2,'Two','c-2',NULL,NULL,-1e300,'it\'s','',_binary '',0xFFFE00,NULL,NULL,NULL,'838:59:59.000',1901,'[]',NULL,0,7),(102,NULL,'日本 😀',NULL,'x ',0.00,1e-10,NULL,NULL,NULL,NULL,'','1000-01-01 00:00:00.000000','1970-01-02 00:00:00','00:00:00.000',2155,'null','t',1,-2147483648);
/*!40000 ALTER TABLE `books` ENABLE KEYS */;
UNLOCK TABLES;

--
-- Table structure for table `authors`
--

DROP TABLE IF EXISTS `authors`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `authors` (
  `id` int unsigned NOT NULL AUTO_INCREMENT,
  `name` varchar(80) NOT NULL DEFAULT '',
  `born` date DEFAULT NULL,
  `public_id` binary(16) DEFAULT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `name` (`name`)
) ENGINE=InnoDB AUTO_INCREMENT=4 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci STATS_PERSISTENT=0;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `authors`
--

LOCK TABLES `authors` WRITE;
/*!40000 ALTER TABLE `authors` DISABLE KEYS */;
INSERT INTO `authors` VALUES (0,'nobody',NULL,NULL),(1,'Ann','1970-01-02',0x000102030405060708090A0B0C0D0E0F),(2,'Böb',NULL,NULL),(3,'日本 😀','2000-02-29',NULL);
/*!40000 ALTER TABLE `authors` ENABLE KEYS */;
UNLOCK TABLES;

--
-- Temporary view structure for view `novels`
--

DROP TABLE IF EXISTS `novels`;
/*!50001 DROP VIEW IF EXISTS `novels`*/;
SET @saved_cs_client     = @@character_set_client;
/*!50503 SET character_set_client = utf8mb4 */;
/*!50001 CREATE VIEW `novels` AS SELECT 
 1 AS `id`,
 1 AS `title`,
 1 AS `author`*/;
SET character_set_client = @saved_cs_client;

--
-- Current Database: `shop8`
--

USE `shop8`;

--
-- Final view structure for view `novels`
--

/*!50001 DROP VIEW IF EXISTS `novels`*/;
/*!50001 SET @saved_cs_client          = @@character_set_client */;
/*!50001 SET @saved_cs_results         = @@character_set_results */;
/*!50001 SET @saved_col_connection     = @@collation_connection */;
/*!50001 SET character_set_client      = utf8mb4 */;
/*!50001 SET character_set_results     = utf8mb4 */;
/*!50001 SET collation_connection      = utf8mb4_0900_ai_ci */;
/*!50001 CREATE ALGORITHM=UNDEFINED */
/*!50013 DEFINER=`root`@`localhost` SQL SECURITY DEFINER */
/*!50001 VIEW `novels` AS select `b`.`id` AS `id`,`b`.`title` AS `title`,`a`.`name` AS `author` from (`books` `b` join `authors` `a` on((`a`.`id` = `b`.`author_id`))) where (`b`.`kind` = 'novel') */;
/*!50001 SET character_set_client      = @saved_cs_client */;
/*!50001 SET character_set_results     = @saved_cs_results */;
/*!50001 SET collation_connection      = @saved_col_connection */;
SET @@SESSION.SQL_LOG_BIN = @MYSQLDUMP_TEMP_LOG_BIN;
/*!40103 SET TIME_ZONE=@OLD_TIME_ZONE */;

/*!40101 SET SQL_MODE=@OLD_SQL_MODE */;
/*!40014 SET FOREIGN_KEY_CHECKS=@OLD_FOREIGN_KEY_CHECKS */;
/*!40014 SET UNIQUE_CHECKS=@OLD_UNIQUE_CHECKS */;
/*!40101 SET CHARACTER_SET_CLIENT=@OLD_CHARACTER_SET_CLIENT */;
/*!40101 SET CHARACTER_SET_RESULTS=@OLD_CHARACTER_SET_RESULTS */;
/*!40101 SET COLLATION_CONNECTION=@OLD_COLLATION_CONNECTION */;
/*!40111 SET SQL_NOTES=@OLD_SQL_NOTES */;

-- Dump completed on 2024-02-29 12:00:00
