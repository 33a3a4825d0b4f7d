<?php
// Stands for artisan: `migrate` and `tinker FILE` over Illuminate's database package alone, with the files of a Laravel application.
require '/usr/share/php/Illuminate/Database/autoload.php';

use Illuminate\Database\Capsule\Manager;
use Illuminate\Support\Facades\Facade;

$env = parse_ini_file('.env');
$manager = new Manager();
$manager->addConnection(['driver' => $env['DB_CONNECTION'], 'host' => $env['DB_HOST'], 'port' => $env['DB_PORT'], 'database' => $env['DB_DATABASE'],
    'username' => $env['DB_USERNAME'], 'password' => $env['DB_PASSWORD'], 'charset' => 'utf8mb4', 'collation' => 'utf8mb4_unicode_ci']);
$manager->setAsGlobal();
$manager->bootEloquent();
$manager->getContainer()->instance('db', $manager->getDatabaseManager());
Facade::setFacadeApplication($manager->getContainer());
array_map(fn ($file) => require $file, glob('app/Models/*.php'));
if ($argv[1] === 'migrate') {
    foreach (glob('database/migrations/*.php') as $file) {
        (require $file)->up();
    }
} else {
    require $argv[2];
}
